//! What a host, or a packet, gets wrong, and a queue that is always full.

#![allow(clippy::pedantic, reason = "tests")]

mod common;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use common::{End, Session, allocate, last_fault};
use hsa_emu::hsa::*;

/// The runtime is one for the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const FAULTS: &[u8] = include_bytes!("fixtures/faults.elf");

fn lock(host: *mut c_void, size: usize) -> Status {
    let mut device = ptr::null_mut();
    // SAFETY: the result goes into `device`; no kernel runs.
    unsafe { hsa_amd_memory_lock(host, size, ptr::null_mut(), 0, &raw mut device) }
}

#[test]
fn a_lock_that_fails_leaves_nothing_to_unlock() {
    let _alone = alone();
    assert_eq!(hsa_init(), 0);
    let device = allocate(4096).cast::<c_void>();
    assert_eq!(lock(device, 4096), status::OUT_OF_RESOURCES);
    assert_eq!(hsa_amd_memory_unlock(device), status::INVALID_ARGUMENT);
    // And what was there before is there still.
    assert_eq!(hsa_amd_memory_pool_free(device), 0);
    assert_eq!(hsa_shut_down(), 0);
}

#[test]
fn no_lock_outlives_the_runtime() {
    let _alone = alone();
    let mut host = vec![0_u64; 512];
    let place = host.as_mut_ptr().cast::<c_void>();
    for _ in 0..2 {
        assert_eq!(hsa_init(), 0);
        assert_eq!(lock(place, 4096), 0);
        assert_eq!(hsa_shut_down(), 0);
    }
}

#[test]
fn a_grid_larger_than_the_agent_says_is_refused() {
    let _alone = alone();
    // 2^32, 2^64 and more threads.
    for grid in [[1 << 16, 1 << 16, 1], [1 << 31, 1 << 31, 4], [u32::MAX; 3]] {
        let session = Session::new(FAULTS);
        assert_eq!(
            session.launch_grid("store", grid, 1, &[0], 60),
            End::Error(status::INVALID_PACKET_FORMAT)
        );
        assert!(last_fault().contains("grid"), "{}", last_fault());
    }
}

/// The most memory that this process has had, in KiB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().split(' ').next());
    number.unwrap().parse().unwrap()
}

/// A file of some kilobytes says that it has half a gigabyte of code.
#[test]
fn code_takes_no_memory_for_what_the_file_has_not() {
    let _alone = alone();
    let mut image = FAULTS.to_vec();
    let field = |image: &[u8], at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    // The last segment that is loaded is a writable one.
    let header = (0..7)
        .map(|n| 64 + n * 56)
        .rfind(|&at| field(&image, at) == 1)
        .unwrap();
    assert_eq!(field(&image, header + 4), 6);
    image[header + 4] |= 1;
    image[header + 40..header + 48].copy_from_slice(&(1_u64 << 29).to_le_bytes());
    let before = most_memory();
    drop(Session::new(&image));
    let more = most_memory() - before;
    assert!(more < 200 << 10, "{more} KiB more");
}

#[test]
fn each_packet_of_a_full_ring_completes_its_own_signal() {
    const PACKETS: u64 = 200_000;
    let _alone = alone();
    let session = Session::new(FAULTS);
    let mut signals = [Handle { handle: 0 }; 2];
    let counts: [i64; 2] = std::array::from_fn(|which| {
        (0..PACKETS).filter(|n| n / 64 % 2 == which as u64).count() as i64
    });
    // SAFETY: results go into variables; fields of the packets lie where the specification says, and
    // a slot is written when the queue has read it.
    unsafe {
        for (signal, count) in signals.iter_mut().zip(counts) {
            assert_eq!(hsa_signal_create(count, 0, ptr::null(), signal), 0);
        }
        let queue = &*session.queue();
        for n in 0..PACKETS {
            let index = hsa_queue_add_write_index_relaxed(session.queue(), 1);
            assert_eq!(index, n);
            let mut looks = 0_u32;
            while index - hsa_queue_load_read_index_scacquire(session.queue()) >= 64 {
                // Mostly without a rest, to be there when the slot is given back.
                looks += 1;
                if looks.is_multiple_of(4096) {
                    thread::yield_now();
                }
            }
            let at = queue.base.cast::<u8>().add(index as usize % 64 * 64);
            // A barrier that waits for nothing.
            at.add(8).cast::<[u64; 5]>().write([0; 5]);
            let signal = signals[(index / 64 % 2) as usize];
            at.add(56).cast::<u64>().write(signal.handle);
            AtomicU32::from_ptr(at.cast()).store(3, Ordering::Release);
            hsa_signal_store_relaxed(queue.doorbell, index as i64);
        }
        while hsa_queue_load_read_index_scacquire(session.queue()) < PACKETS {
            thread::yield_now();
        }
    }
    // The last ones may be on their way.
    let sum = || -> i64 { signals.iter().map(|&s| hsa_signal_load_scacquire(s)).sum() };
    while sum() != 0 {
        thread::yield_now();
    }
    assert_eq!(signals.map(|s| hsa_signal_load_scacquire(s)), [0, 0]);
}
