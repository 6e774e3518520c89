//! What happens when a device program touches memory that is not there, or aborts.
//!
//! The image runs inside this process, so a fault arrives as a signal on the faulting thread. That
//! thread goes no further: it leaves word of what happened, for the run loop to end the run with
//! 134, its output and report written. Should that not work (a program can destroy anything), the
//! handler ends the process itself. In a process that is a loader and nothing else, it does so for
//! faults of other threads as well: a wild pointer of the program's is felt anywhere, and its
//! destructors run on the main thread.
//!
//! A signal that somebody has sent from outside is no fault: it does what it does by default.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

/// The signals of a fault, with their names for people.
const SIGNALS: [(c_int, &str); 7] = [
    (libc::SIGSEGV, "segmentation fault"),
    (libc::SIGBUS, "bus error"),
    (libc::SIGILL, "illegal instruction"),
    (libc::SIGFPE, "arithmetic fault"),
    (libc::SIGABRT, "abort"),
    (libc::SIGTRAP, "trap"),
    (libc::SIGSYS, "forbidden system call"),
];
/// How long the run loop has to end the process: longer than it takes to drain the server.
static PATIENCE: libc::timespec = libc::timespec {
    tv_sec: 3,
    tv_nsec: 0,
};
const EXIT_CODE: c_int = 134;
/// Bytes of a signal stack, for threads that have none.
const SIGNAL_STACK: usize = 64 << 10;
/// How far below a stack its overflow is looked for: as far as a large frame reaches.
const BELOW_STACK: usize = 64 << 10;

/// Who a thread is to the handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Not ours: its faults are those of this program.
    Other,
    /// Runs constructors of an image: nobody waits for a word.
    Loading,
    /// A device thread.
    Device,
}

struct Here {
    role: Cell<Role>,
    block: Cell<u64>,
    thread: Cell<u64>,
    /// The lowest address of the thread's stack; 0 if not known.
    stack: Cell<usize>,
}

thread_local! {
    // Without initialisation or destructor, so that a signal handler may look.
    static HERE: Here = const {
        Here {
            role: Cell::new(Role::Other),
            block: Cell::new(0),
            thread: Cell::new(0),
            stack: Cell::new(0),
        }
    };
}

/// The first fault. The fields are written by the thread that has taken `taken`, before `ready`.
struct First {
    taken: AtomicBool,
    ready: AtomicBool,
    signal: AtomicUsize,
    address: AtomicUsize,
    overflow: AtomicBool,
    block: AtomicU64,
    thread: AtomicU64,
}

static FIRST: First = First {
    taken: AtomicBool::new(false),
    ready: AtomicBool::new(false),
    signal: AtomicUsize::new(0),
    address: AtomicUsize::new(0),
    overflow: AtomicBool::new(false),
    block: AtomicU64::new(0),
    thread: AtomicU64::new(0),
};

/// What was done about each of [`SIGNALS`] before.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Whether this process is a loader: then all its faults are the program's.
static LOADER: AtomicBool = AtomicBool::new(false);
/// What the last words begin with.
static NAME: OnceLock<String> = OnceLock::new();

/// This process is there to run one image: any fault in it ends it with a sentence.
pub(crate) fn own_process() {
    install();
    LOADER.store(true, Ordering::Relaxed);
}

/// Catches faults of device threads from now on.
pub(crate) fn install() {
    NAME.get_or_init(|| {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(|path| path.file_name());
        name.map_or_else(|| "gpurpc".into(), |name| name.to_string_lossy().into())
    });
    BEFORE.get_or_init(|| {
        // First what was there, for all: the handler needs it.
        // SAFETY: with a null action only the old one is written, to a place for one, which zeros
        // are valid for.
        let before = SIGNALS.map(|(signal, _)| unsafe {
            let mut old: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, null(), &raw mut old);
            old
        });
        for (signal, _) in SIGNALS {
            // SAFETY: the handler has the type that SA_SIGINFO asks for, lives as long as the
            // process, and does only what a signal handler may.
            unsafe {
                let mut new: libc::sigaction = MaybeUninit::zeroed().assume_init();
                new.sa_sigaction = handle as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&raw mut new.sa_mask);
                libc::sigaction(signal, &raw const new, null_mut());
            }
        }
        before
    });
}

/// A sentence about the first fault of the program, if there was one.
pub(crate) fn seen() -> Option<String> {
    // Acquire: pairs with the release in `record`.
    if !FIRST.ready.load(Ordering::Acquire) {
        return None;
    }
    let signal = FIRST.signal.load(Ordering::Relaxed) as c_int;
    let address = FIRST.address.load(Ordering::Relaxed);
    let what = if FIRST.overflow.load(Ordering::Relaxed) {
        "stack overflow (--stack-size gives more)".to_owned()
    } else if matches!(signal, libc::SIGSEGV | libc::SIGBUS) {
        format!("{} at address {address:#x}", name(signal))
    } else {
        name(signal).to_owned()
    };
    let block = FIRST.block.load(Ordering::Relaxed);
    let thread = FIRST.thread.load(Ordering::Relaxed);
    Some(format!("{what} in thread {thread} of block {block}"))
}

fn name(signal: c_int) -> &'static str {
    SIGNALS
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or("fault", |(_, name)| name)
}

/// Says which device thread this thread is now.
pub(crate) fn now_running(block: u64, thread: u64) {
    HERE.with(|here| {
        here.block.set(block);
        here.thread.set(thread);
    });
}

/// Runs `f`, which runs code of an image that is being loaded.
pub(crate) fn watch<R>(f: impl FnOnce() -> R) -> R {
    install();
    HERE.with(|here| here.role.set(Role::Loading));
    let result = f();
    HERE.with(|here| here.role.set(Role::Other));
    result
}

/// As long as it lives, this thread is a device thread.
pub(crate) struct Guard {
    /// The signal stack, where the thread had none.
    _signal_stack: Option<SignalStack>,
}

impl Guard {
    pub(crate) fn thread() -> Self {
        let signal_stack = SignalStack::new();
        HERE.with(|here| {
            here.stack.set(lowest_stack_address());
            here.role.set(Role::Device);
        });
        Self {
            _signal_stack: signal_stack,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        HERE.with(|here| here.role.set(Role::Other));
    }
}

/// A stack for signals of this thread: where the thread's own has overflowed, a handler has no
/// other.
struct SignalStack {
    _memory: Box<[u8]>,
}

impl SignalStack {
    /// `None` if the thread has one: the standard library gives one to most.
    fn new() -> Option<Self> {
        // SAFETY: zeros are a valid `stack_t`; with a null new stack the call only writes the old.
        let old = unsafe {
            let mut old: libc::stack_t = MaybeUninit::zeroed().assume_init();
            libc::sigaltstack(null(), &raw mut old);
            old
        };
        if old.ss_flags & libc::SS_DISABLE == 0 {
            return None;
        }
        let mut memory = vec![0; SIGNAL_STACK].into_boxed_slice();
        let new = libc::stack_t {
            ss_sp: memory.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: SIGNAL_STACK,
        };
        // SAFETY: the memory is the size that is said, and is given back before it is freed.
        unsafe { libc::sigaltstack(&raw const new, null_mut()) };
        Some(Self { _memory: memory })
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let none = libc::stack_t {
            ss_sp: null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: SIGNAL_STACK,
        };
        // SAFETY: the thread is not on its signal stack: it runs this destructor.
        unsafe { libc::sigaltstack(&raw const none, null_mut()) };
    }
}

/// Where this thread's stack ends, or 0.
fn lowest_stack_address() -> usize {
    // SAFETY: the attributes are initialised by the first call if it succeeds, and destroyed once;
    // the results are places for what is asked.
    unsafe {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        let (mut base, mut size) = (null_mut::<c_void>(), 0);
        let result = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut base, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if result == 0 { base.addr() } else { 0 }
    }
}

/// The signal handler: only atomics, thread-local cells without initialisation, and calls that
/// POSIX lists as safe.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    if sent_from_outside(info) {
        return take_default(signal);
    }
    match HERE.with(|here| here.role.get()) {
        Role::Other if LOADER.load(Ordering::Relaxed) => give_up(
            "the program faulted outside of its device threads: ",
            signal,
        ),
        Role::Other => give_back(signal),
        Role::Loading => give_up("the image faulted while it was loaded: ", signal),
        Role::Device => {
            // SAFETY: the system gives the handler a valid `siginfo_t`; of what is no memory fault
            // the field is some number.
            let address = unsafe { (*info).si_addr() }.addr();
            if FIRST.taken.swap(true, Ordering::Relaxed) {
                // Another thread was first, and the process is about to end.
                loop {
                    wait();
                }
            }
            record(signal, address);
            wait();
            give_up("the program faulted on the device: ", signal);
        }
    }
}

/// Whether another process has sent the signal: `abort` sends one as well, to its own.
fn sent_from_outside(info: *mut siginfo_t) -> bool {
    // SAFETY: the system gives the handler a valid `siginfo_t`, and for codes up to 0 it has the
    // sender's number in it; `getpid` has no preconditions.
    unsafe { (*info).si_code <= 0 && (*info).si_pid() != libc::getpid() }
}

/// Lets the signal do what it does by default, as soon as the handler returns.
fn take_default(signal: c_int) {
    // SAFETY: zeros are the default action; `raise` may be called in a handler, and the signal
    // waits until this one is done with it.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, &raw const default, null_mut());
        libc::raise(signal);
    }
}

fn record(signal: c_int, address: usize) {
    HERE.with(|here| {
        let stack = here.stack.get();
        let end = stack.saturating_sub(BELOW_STACK)..stack.saturating_add(4096);
        let overflow = stack != 0 && signal == libc::SIGSEGV && end.contains(&address);
        FIRST.overflow.store(overflow, Ordering::Relaxed);
        FIRST.block.store(here.block.get(), Ordering::Relaxed);
        FIRST.thread.store(here.thread.get(), Ordering::Relaxed);
    });
    FIRST.signal.store(signal as usize, Ordering::Relaxed);
    FIRST.address.store(address, Ordering::Relaxed);
    // Release: pairs with the acquire in `seen`.
    FIRST.ready.store(true, Ordering::Release);
}

fn wait() {
    // SAFETY: the time is valid and no remainder is asked for.
    unsafe { libc::nanosleep(&raw const PATIENCE, null_mut()) };
}

/// Leaves the signal to whoever handled it before: it comes again when this handler returns.
fn give_back(signal: c_int) {
    let old = BEFORE.get().and_then(|before| {
        let index = SIGNALS.iter().position(|(number, _)| *number == signal)?;
        before.get(index)
    });
    // SAFETY: `old` is an action that the system gave for this signal; zeros are the default
    // action.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        let action = old.unwrap_or(&default);
        libc::sigaction(signal, action, null_mut());
    }
}

/// Ends the process with one sentence.
fn give_up(what: &str, signal: c_int) -> ! {
    let program = NAME.get().map_or("gpurpc", String::as_str);
    for part in [program, ": ", what, name(signal), "\n"] {
        // SAFETY: the bytes are those of the string.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: `_exit` may be called anywhere.
    unsafe { libc::_exit(EXIT_CODE) }
}
