//! Programs that end badly: each is told as the runtime would tell it, with the instruction, and the
//! host goes on.

#![allow(clippy::pedantic, reason = "tests")]

mod common;

use std::ffi::c_void;
use std::fs;
use std::ptr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{End, Session, allocate, clang, gpu, last_fault};
use hsa_emu::hsa::*;

/// The last fault is one for all, and a handler is for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const FAULTS: &[u8] = include_bytes!("fixtures/faults.elf");

fn address(memory: *mut u8) -> u64 {
    memory.expose_provenance() as u64
}

/// Runs a kernel and checks the status and what the fault says.
fn fault(kernel: &str, argument: u64, status: Status, says: &[&str]) {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let session = Session::new(FAULTS);
    assert_eq!(
        session.launch(kernel, 1, 1, &[argument], 60),
        End::Error(status),
        "{kernel}"
    );
    let text = last_fault();
    for part in says {
        assert!(
            text.contains(part),
            "{kernel}: {text:?} does not say {part:?}"
        );
    }
    assert!(text.contains("workgroup 0,0,0 wave 0"), "{text}");
    drop(session);
    // The process and the device are well.
    let session = Session::new(FAULTS);
    let memory = allocate(4);
    assert_eq!(
        session.launch("store", 1, 1, &[address(memory)], 60),
        End::Done
    );
    // SAFETY: 4 bytes of the device's memory.
    assert_eq!(unsafe { memory.cast::<u32>().read() }, 42);
}

#[test]
fn a_trap() {
    fault("trap", 0, status::EXCEPTION, &["trap 2", "`s_trap 0x2`"]);
}

#[test]
fn address_zero() {
    let says = ["read of 4 bytes at 0x0", "`global_load_b32 v2, v1, s[6:7]`"];
    fault("read", 0, status::MEMORY_FAULT, &says);
}

#[test]
fn an_address_at_the_end_of_all() {
    fault(
        "read",
        u64::MAX,
        status::MEMORY_FAULT,
        &["at 0xffffffffffffffff"],
    );
}

#[test]
fn an_overrun_stack() {
    let says = [
        "private memory, which has 1024 bytes",
        "`scratch_store_b32 off, v1, s32`",
    ];
    fault("stack", 0, status::MEMORY_APERTURE_VIOLATION, &says);
}

#[test]
fn an_illegal_instruction() {
    fault("illegal", 0, status::ILLEGAL_INSTRUCTION, &["0xc4000000"]);
}

#[test]
fn a_jump_to_nowhere() {
    fault(
        "lost",
        0,
        status::MEMORY_FAULT,
        &["no code is there", "at 0x1000"],
    );
}

#[test]
fn a_write_to_code() {
    fault("selfwrite", 0, status::MEMORY_FAULT, &["read-only"]);
}

#[test]
fn an_access_past_local_memory() {
    fault(
        "local",
        0,
        status::MEMORY_APERTURE_VIOLATION,
        &["local memory, which has 64 bytes"],
    );
}

#[test]
fn an_unaligned_atomic() {
    let memory = {
        assert_eq!(hsa_init(), 0);
        allocate(64)
    };
    let says = ["unaligned", "global_atomic_add_u32 v1, v1, s[6:7]"];
    fault(
        "unaligned",
        address(memory),
        status::MEMORY_APERTURE_VIOLATION,
        &says,
    );
    hsa_amd_memory_pool_free(memory.cast());
    assert_eq!(hsa_shut_down(), 0);
}

#[test]
fn freed_memory() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let session = Session::new(FAULTS);
    let memory = allocate(1 << 20);
    // In the middle: the next allocation may lie at its start or end.
    let middle = address(memory) + (1 << 19);
    assert_eq!(session.launch("read", 1, 1, &[middle], 60), End::Done);
    assert_eq!(hsa_amd_memory_pool_free(memory.cast()), 0);
    let end = session.launch("read", 1, 1, &[middle], 60);
    assert_eq!(end, End::Error(status::MEMORY_FAULT));
}

#[test]
fn memory_of_the_host_that_was_not_allowed() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let session = Session::new(FAULTS);
    let on_the_host = Box::new(5u32);
    let end = session.launch("read", 1, 1, &[(&raw const *on_the_host) as u64], 60);
    assert_eq!(end, End::Error(status::MEMORY_FAULT));
    drop(session);
    let session = Session::new(FAULTS);
    let mut at = ptr::null_mut();
    let pool = Handle { handle: 0x40 };
    // SAFETY: the result goes into `at`.
    let status = unsafe { hsa_amd_memory_pool_allocate(pool, 4096, 0, &raw mut at) };
    assert_eq!(status, 0);
    let argument = [at.expose_provenance() as u64];
    let agent = gpu();
    // SAFETY: one agent.
    let allow = || unsafe { hsa_amd_agents_allow_access(1, &raw const agent, ptr::null(), at) };
    let end = session.launch("read", 1, 1, &argument, 60);
    assert_eq!(end, End::Error(status::MEMORY_FAULT));
    assert!(last_fault().contains("the host has not allowed it"));
    drop(session);
    let session = Session::new(FAULTS);
    assert_eq!(allow(), 0);
    assert_eq!(session.launch("read", 1, 1, &argument, 60), End::Done);
    assert_eq!(hsa_amd_memory_pool_free(at), 0);
}

/// What the handler saw.
static SEEN: Mutex<Vec<(u64, u32)>> = Mutex::new(Vec::new());

unsafe extern "C" fn on_event(event: *const Event, _: *mut c_void) -> Status {
    // SAFETY: the runtime's event, for the time of the call.
    let event = unsafe { &*event };
    assert_eq!(event.kind, 0);
    SEEN.lock()
        .expect("no panic before")
        .push((event.address, event.reasons));
    0
}

#[test]
fn a_system_event_handler_is_told_of_memory_faults() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let session = Session::new(FAULTS);
    assert_eq!(
        hsa_amd_register_system_event_handler(Some(on_event), ptr::null_mut()),
        0
    );
    assert_eq!(
        session.launch("read", 1, 1, &[0x1234_5678], 1),
        End::Running
    );
    assert_eq!(*SEEN.lock().expect("no panic"), [(0x1234_5678, 1)]);
    drop(session);
}

#[test]
fn a_kernel_without_end_does_not_keep_the_host() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for kernel in ["spin", "sleeper"] {
        for (blocks, threads) in [(1, 1), (64, 256)] {
            let session = Session::new(FAULTS);
            assert_eq!(
                session.launch(kernel, blocks, threads, &[], 1),
                End::Running
            );
            // Memory can be had and freed, and copied, meanwhile.
            let memory = allocate(1 << 20);
            assert_eq!(hsa_amd_memory_pool_free(memory.cast()), 0);
            let start = Instant::now();
            drop(session);
            assert!(start.elapsed() < Duration::from_secs(100), "{kernel}");
        }
    }
}

#[test]
fn barriers_and_local_memory() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let session = Session::new(FAULTS);
    for (blocks, threads) in [(1, 1), (1, 33), (3, 64), (5, 1000), (70, 256)] {
        let count = blocks as usize * threads as usize;
        let memory = allocate(count * 4);
        assert_eq!(
            session.launch("sum", blocks, threads, &[address(memory)], 120),
            End::Done
        );
        let sum = (0..u32::from(threads)).sum::<u32>();
        for n in 0..count {
            // SAFETY: as many words.
            let got = unsafe { memory.cast::<u32>().add(n).read() };
            assert_eq!(got, sum, "{blocks}x{threads}: item {n}");
        }
        hsa_amd_memory_pool_free(memory.cast());
    }
}

#[test]
fn a_lock_in_memory() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let session = Session::new(FAULTS);
    let memory = allocate(8);
    assert_eq!(
        session.launch("lock", 20, 100, &[address(memory)], 120),
        End::Done
    );
    // SAFETY: two words.
    assert_eq!(unsafe { memory.cast::<[u32; 2]>().read() }, [0, 2000]);
}

#[test]
fn damaged_images_are_refused() {
    assert_eq!(hsa_init(), 0);
    let load = |bytes: &[u8]| {
        let (mut reader, mut executable) = (Handle { handle: 0 }, Handle { handle: 0 });
        // SAFETY: all results go into the variables above.
        unsafe {
            let code = bytes.as_ptr().cast();
            hsa_code_object_reader_create_from_memory(code, bytes.len(), &raw mut reader);
            hsa_executable_create_alt(1, 0, ptr::null(), &raw mut executable);
            let none = ptr::null_mut();
            let status =
                hsa_executable_load_agent_code_object(executable, gpu(), reader, ptr::null(), none);
            hsa_executable_destroy(executable);
            hsa_code_object_reader_destroy(reader);
            status
        }
    };
    assert_eq!(load(FAULTS), 0);
    for length in 1..FAULTS.len() {
        // Anything but a crash; most of the file is needed.
        let status = load(&FAULTS[..length]);
        assert!(
            status != 0 || length > FAULTS.len() / 2,
            "{length} bytes: {status:#x}"
        );
    }
    let mut other = FAULTS.to_vec();
    // e_flags: gfx1030.
    other[48] = 0x36;
    assert_eq!(load(&other), status::INCOMPATIBLE_ARGUMENTS);
    let mut changed = FAULTS.to_vec();
    for n in 0..changed.len() {
        for byte in [0xff, 0x80, 0x01] {
            let before = changed[n];
            changed[n] ^= byte;
            load(&changed);
            changed[n] = before;
        }
    }
    assert_eq!(hsa_shut_down(), 0);
}

/// The fixture is what its source says.
#[test]
fn the_fixture_is_assembled_from_its_source() {
    let options: Vec<_> = common::DEVICE
        .into_iter()
        .chain(["-Wl,--build-id=none"])
        .collect();
    let Some(path) = clang("fixtures/faults.s", &options) else {
        println!("left out: there is no clang");
        return;
    };
    let made = fs::read(path).expect("what clang wrote");
    // Compared is the code: from the first kernel to the last.
    let start = |image: &[u8]| {
        let store = [0x81, 0x01, 0x04, 0xf4];
        image
            .windows(4)
            .position(|word| word == store)
            .expect("the first kernel")
    };
    let (a, b) = (&made[start(&made)..], &FAULTS[start(FAULTS)..]);
    let length = 0x900;
    assert!(
        a[..length] == b[..length],
        "assemble tests/fixtures/faults.s again"
    );
}
