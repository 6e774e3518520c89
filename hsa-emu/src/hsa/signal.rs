//! Signals: numbers that threads and packets wait for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::types::{Handle, Status, status};

/// A signal. Its start is what the hardware's signals look like, so that a program may read the value.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Signal {
    kind: i64,
    value: AtomicI64,
    rest: [u64; 6],
    waiters: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

static SIGNALS: LazyLock<RwLock<HashMap<u64, Arc<Signal>>>> = LazyLock::new(RwLock::default);

/// How a value is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Equal,
    NotEqual,
    Less,
    GreaterOrEqual,
}

impl Condition {
    fn new(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Equal,
            1 => Self::NotEqual,
            2 => Self::Less,
            3 => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, value: i64, than: i64) -> bool {
        match self {
            Self::Equal => value == than,
            Self::NotEqual => value != than,
            Self::Less => value < than,
            Self::GreaterOrEqual => value >= than,
        }
    }
}

/// Looks at the value before a thread waits in the kernel.
const SPINS: u32 = 200;
/// A program may store to a signal without telling anybody.
const RECHECK: Duration = Duration::from_millis(2);

impl Signal {
    /// A new signal and its handle.
    pub(crate) fn create(value: i64) -> (Handle, Arc<Self>) {
        let signal = Arc::new(Self {
            kind: 1,
            value: AtomicI64::new(value),
            rest: [0; 6],
            waiters: AtomicU32::new(0),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        });
        let handle = Arc::as_ptr(&signal).addr() as u64;
        let mut all = SIGNALS.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(handle, Arc::clone(&signal));
        (Handle { handle }, signal)
    }

    /// The signal of a handle.
    pub(crate) fn find(handle: Handle) -> Option<Arc<Self>> {
        let all = SIGNALS.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&handle.handle).cloned()
    }

    /// Ends a signal; those who wait for it keep it until they are done.
    pub(crate) fn destroy(handle: Handle) -> bool {
        let mut all = SIGNALS.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(&handle.handle).is_some()
    }

    /// The value; acquires.
    pub(crate) fn load(&self) -> i64 {
        self.value.load(Ordering::SeqCst)
    }

    /// Changes the value and wakes who waits; releases.
    pub(crate) fn update(&self, f: impl Fn(i64) -> i64) -> i64 {
        let result = self
            .value
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(f(old)));
        // SeqCst pairs with the waiter, who counts itself before it looks: one sees the other.
        if self.waiters.load(Ordering::SeqCst) != 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
        }
        result.unwrap_or_else(|old| old)
    }

    /// Waits until the value meets a condition or time is up; gives the value.
    pub(crate) fn wait(&self, condition: Condition, than: i64, end: Option<Instant>) -> i64 {
        for _ in 0..SPINS {
            let value = self.load();
            if condition.holds(value, than) {
                return value;
            }
            std::hint::spin_loop();
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let value = loop {
            let value = self.load();
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if condition.holds(value, than) || left == Some(Duration::ZERO) {
                break value;
            }
            let time = left.map_or(RECHECK, |left| left.min(RECHECK));
            let wait = self.changed.wait_timeout(guard, time);
            guard = wait.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(guard);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        value
    }
}

/// `hsa_signal_create`
///
/// # Safety
/// `signal` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_signal_create(
    value: i64,
    _consumers: u32,
    _agents: *const Handle,
    signal: *mut Handle,
) -> Status {
    if signal.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let (handle, _) = Signal::create(value);
    // SAFETY: not null, so valid for writes as the caller promises.
    unsafe { signal.write(handle) };
    status::SUCCESS
}

/// `hsa_amd_signal_create`
///
/// # Safety
/// As for [`hsa_signal_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_signal_create(
    value: i64,
    consumers: u32,
    agents: *const Handle,
    _attributes: u64,
    signal: *mut Handle,
) -> Status {
    // SAFETY: the caller promises the same.
    unsafe { hsa_signal_create(value, consumers, agents, signal) }
}

/// `hsa_signal_destroy`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_signal_destroy(signal: Handle) -> Status {
    if Signal::destroy(signal) {
        status::SUCCESS
    } else {
        status::INVALID_SIGNAL
    }
}

/// Waits as all four functions do: timeouts are in nanoseconds, all ones for none.
fn wait(signal: Handle, condition: u32, than: i64, timeout: u64) -> i64 {
    let (Some(signal), Some(condition)) = (Signal::find(signal), Condition::new(condition)) else {
        return 0;
    };
    let end = Instant::now().checked_add(Duration::from_nanos(timeout));
    signal.wait(condition, than, end.filter(|_| timeout != u64::MAX))
}

/// The functions that differ only in ordering, all of which are ordered most strictly here.
macro_rules! functions {
    ($(wait $wait:ident;)* $(load $load:ident;)* $(store $store:ident;)* $(add $add:ident;)* $(subtract $sub:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($wait), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $wait(signal: Handle, condition: u32, than: i64, timeout: u64, _state: u32) -> i64 {
                wait(signal, condition, than, timeout)
            }
        )*
        $(
            #[doc = concat!("`", stringify!($load), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $load(signal: Handle) -> i64 {
                Signal::find(signal).map_or(0, |signal| signal.load())
            }
        )*
        $(
            #[doc = concat!("`", stringify!($store), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $store(signal: Handle, value: i64) {
                if let Some(signal) = Signal::find(signal) {
                    signal.update(|_| value);
                }
            }
        )*
        $(
            #[doc = concat!("`", stringify!($add), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $add(signal: Handle, value: i64) {
                if let Some(signal) = Signal::find(signal) {
                    signal.update(|old| old.wrapping_add(value));
                }
            }
        )*
        $(
            #[doc = concat!("`", stringify!($sub), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $sub(signal: Handle, value: i64) {
                if let Some(signal) = Signal::find(signal) {
                    signal.update(|old| old.wrapping_sub(value));
                }
            }
        )*
    };
}

functions! {
    wait hsa_signal_wait_scacquire;
    wait hsa_signal_wait_acquire;
    wait hsa_signal_wait_relaxed;
    load hsa_signal_load_scacquire;
    load hsa_signal_load_acquire;
    load hsa_signal_load_relaxed;
    store hsa_signal_store_screlease;
    store hsa_signal_store_release;
    store hsa_signal_store_relaxed;
    store hsa_signal_silent_store_relaxed;
    add hsa_signal_add_screlease;
    add hsa_signal_add_relaxed;
    subtract hsa_signal_subtract_screlease;
    subtract hsa_signal_subtract_relaxed;
}
