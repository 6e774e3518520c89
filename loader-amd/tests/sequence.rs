//! The device over a pretended runtime: what is called in which order, what a packet holds, what is
//! given back, whatever fails.
#![allow(clippy::pedantic, clippy::wildcard_imports)]

mod fake;

use std::sync::Arc;

use fake::{IMAGE_TARGET, Kernel as Does, State, Turn, api, kernel, object, turn, with};
use loader_amd::AmdDevice;
use loader_core::device::{Device, DeviceError, Grid, Kernel};
use rpc_server::DeviceMemory;

const POINTERS: [(u32, u32, &str); 4] = [
    (0, 4, "by_value"),
    (8, 8, "global_buffer"),
    (16, 8, "global_buffer"),
    (24, 8, "global_buffer"),
];
const GRID: Grid = Grid {
    blocks: [6, 2, 1],
    threads: [64, 3, 1],
};

fn image() -> Vec<u8> {
    let hidden = [
        (32, 4, "hidden_block_count_x"),
        (44, 2, "hidden_group_size_x"),
    ];
    let start = [&POINTERS[..], &hidden].concat();
    let kernels = vec![
        kernel("_begin", &POINTERS[..3], 24),
        kernel("_start", &start, 48),
        kernel("_end", &[], 0),
    ];
    object(IMAGE_TARGET, kernels)
}

fn open(stack: Option<u64>) -> Result<AmdDevice, DeviceError> {
    AmdDevice::open_over(api(), 0, stack)
}

/// A whole run.
fn run(device: &AmdDevice) -> Result<i32, DeviceError> {
    device.load(&image())?;
    device.reserve_heap(1 << 20)?;
    device.reserve_staging()?;
    let shared = device.allocate_shared(5000)?;
    // SAFETY: 5000 bytes were just allocated there.
    let last = unsafe { *shared.host.as_ptr().add(4999) };
    assert_eq!(last, 0, "it is zeroed");
    let ret = device.allocate_private(6)?;
    let (argc, argv, envp) = (3, 0x11, 0x22);
    for kernel in [
        Kernel::Begin { argc, argv, envp },
        Kernel::Start {
            argc,
            argv,
            envp,
            ret,
        },
        Kernel::End,
    ] {
        let grid = if matches!(kernel, Kernel::Start { .. }) {
            GRID
        } else {
            Grid::ONE
        };
        device.launch(&kernel, grid)?;
        while !device.finished()? {}
    }
    let mut value = [0; 4];
    device
        .copy_to_host(ret, &mut value)
        .map_err(|error| DeviceError::Image(error.to_string()))?;
    Ok(i32::from_le_bytes(value))
}

#[test]
fn a_run_starts_three_kernels_and_gives_everything_back() {
    let turn = turn(State::default());
    let device = open(None).unwrap();
    assert_eq!(device.info().name, "Pretended GPU (gfx1100)");
    assert_eq!(device.info().resident_warps, 96 * 32);
    assert_eq!(device.info().lanes, 32);
    assert_eq!(run(&device).unwrap(), 3);
    assert_eq!(device.info().lanes, 64, "the image's own");
    let usage = device.resource_usage().unwrap();
    assert!(
        usage[1].starts_with("_start: 135 vector registers") && usage[1].contains("(16384 given)")
    );
    drop(device);
    with(|state| {
        let packets: Vec<_> = state.packets.iter().map(|(packet, _)| *packet).collect();
        let objects: Vec<_> = packets.iter().map(|packet| packet.kernel_object).collect();
        assert_eq!(objects, [0x1001, 0x1000, 0x1002]);
        let start = packets[1];
        assert_eq!((start.header, start.setup), (0x1502, 2));
        assert_eq!(
            [start.grid_size_x, start.grid_size_y, start.grid_size_z],
            [384, 6, 1]
        );
        assert_eq!([start.workgroup_size_x, start.workgroup_size_y], [64, 3]);
        assert_eq!(
            (start.private_segment_size, start.group_segment_size),
            (16384, 512)
        );
        let arguments = &state.packets[1].1;
        assert_eq!(
            arguments[..16],
            [3, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!((arguments[32], arguments[44]), (6, 64));
    });
    turn.assert_clean();
}

/// Each call that may fail does, one in each round.
#[test]
fn whatever_fails_is_told_and_leaves_nothing_behind() {
    let mut rounds = 0;
    loop {
        let turn = turn(State {
            calls_left: Some(rounds),
            ..State::default()
        });
        let result = open(None).and_then(|device| run(&device));
        turn.assert_clean();
        let failed = with(|state| state.calls_left.is_none());
        if let Err(error) = &result {
            let said = error.to_string();
            assert!(failed && !said.contains('\n'), "round {rounds}: {said}");
        }
        if !failed {
            assert_eq!(result.unwrap(), 3);
            break;
        }
        rounds += 1;
    }
    assert!(rounds > 70, "{rounds} calls");
}

fn fault(does: Does) -> (Turn, String) {
    let turn = turn(State {
        kernel: does,
        ..State::default()
    });
    let error = run(&open(None).unwrap()).unwrap_err();
    assert!(matches!(error, DeviceError::Fault(_)), "{error}");
    (turn, error.to_string())
}

#[test]
fn faults_are_named() {
    let (turn, said) = fault(Does::Trap);
    assert!(
        said.contains("trap: HSA status 0x1016 (HSA_STATUS_ERROR_EXCEPTION"),
        "{said}"
    );
    turn.assert_clean();
    drop(turn);
    let (turn, said) = fault(Does::Fault);
    assert!(
        said.contains("memory fault at 0xbad000 (nothing is mapped there)"),
        "{said}"
    );
    turn.assert_clean();
    drop(turn);
    // The next device knows nothing of it.
    let turn = fake::turn(State::default());
    assert_eq!(run(&open(None).unwrap()).unwrap(), 3);
    turn.assert_clean();
}

#[test]
fn a_kernel_that_runs_is_waited_for_by_nobody() {
    let turn = turn(State {
        kernel: Does::Hang,
        ..State::default()
    });
    let device = open(None).unwrap();
    device.load(&image()).unwrap();
    device.launch(&Kernel::End, Grid::ONE).unwrap();
    assert!(!device.finished().unwrap());
    let said = device
        .launch(&Kernel::End, Grid::ONE)
        .unwrap_err()
        .to_string();
    assert!(said.contains("another one runs"), "{said}");
    drop(device);
    turn.assert_clean();
}

#[test]
fn images_that_do_not_fit_are_refused() {
    let _turn = turn(State::default());
    let device = open(None).unwrap();
    let said = |image: &[u8]| device.load(image).unwrap_err().to_string();
    let other = object("amdgcn-amd-amdhsa--gfx90a:xnack-", Vec::new());
    let refused = said(&other);
    assert!(
        refused.contains("built for gfx90a:xnack- and does not run on Pretended GPU (gfx1100), which takes gfx1100"),
        "{refused}"
    );
    assert!(said(&image()[..150]).contains("cut short"));
    assert!(said(b".version 8.0\n").contains("PTX text, not for an AMD GPU"));
    let mut damaged = image();
    damaged[160] ^= 0xFF;
    let _ = said(&damaged);
    let mut noteless = image();
    noteless[64] = 1;
    assert!(said(&noteless).contains("no metadata"));
    // One that fits still can be loaded, once.
    device
        .load(&object(IMAGE_TARGET, vec![kernel("_begin", &[], 0)]))
        .unwrap();
    assert!(said(&image()).contains("already loaded"));
    let start = Kernel::Start {
        argc: 0,
        argv: 0,
        envp: 0,
        ret: 0,
    };
    assert!(!device.has_kernel(&start));
    let missing = device.launch(&start, Grid::ONE).unwrap_err().to_string();
    assert_eq!(missing, "the image has no kernel _start");
}

#[test]
fn limits_are_named() {
    let _turn = turn(State::default());
    let most = 8191 * 1024 / 32;
    assert!(open(Some(most)).is_ok());
    let said = open(Some(most + 1)).unwrap_err().to_string();
    assert!(
        said.starts_with("--stack-size 262113 is more than the 262112"),
        "{said}"
    );
    let device = open(Some(100)).unwrap();
    device.load(&image()).unwrap();
    let said = |blocks, threads| {
        let grid = Grid { blocks, threads };
        device.launch(&Kernel::End, grid).unwrap_err().to_string()
    };
    assert!(said([1; 3], [1025, 1, 1]).starts_with("--threads 1025 is more than the 1024"));
    assert!(said([1; 3], [769, 1, 1]).contains("769 is more than the 768 that _end on Pretended"));
    assert!(said([1 << 31, 1, 1], [2, 1, 1]).starts_with("--blocks times --threads 4294967296"));
    assert!(said([1 << 16, 1 << 16, 1], [1; 3]).starts_with("the number of all threads"));
    assert!(said([0, 1, 1], [1; 3]).contains("at least one"));
    let said = device.reserve_heap(1 << 40).unwrap_err().to_string();
    assert!(said.contains("--heap-size"), "{said}");
}

#[test]
fn what_is_not_there_is_told() {
    let _turn = turn(State {
        without_gpu: true,
        ..State::default()
    });
    let said = open(None).unwrap_err().to_string();
    assert!(said.contains("no AMD GPU that runs kernels"), "{said}");
    with(|state| state.without_gpu = false);
    let said = AmdDevice::open_over(api(), 3, None)
        .unwrap_err()
        .to_string();
    assert_eq!(
        said,
        "there is no AMD GPU 3: the HSA runtime shows 1, counted from 0"
    );
    with(|state| state.refuses_init = true);
    let said = open(None).unwrap_err().to_string();
    let without_driver = !std::path::Path::new("/dev/kfd").exists();
    assert!(!without_driver || said.contains("no /dev/kfd"), "{said}");
}

#[test]
fn memory_is_copied_within_its_bounds() {
    let turn = turn(State::default());
    let device = Arc::new(open(None).unwrap());
    device.load(&image()).unwrap();
    device.reserve_heap(4 << 20).unwrap();
    device.reserve_staging().unwrap();
    let block = device.allocate(3 << 20).unwrap();
    let sent: Vec<u8> = (0..3 << 20).map(|n: u32| (n * 7) as u8).collect();
    device.copy_to_device(&sent, block).unwrap();
    let mut back = vec![0; sent.len()];
    device.copy_to_host(block, &mut back).unwrap();
    assert!(back == sent);
    assert!(device.copy_to_host(block + (4 << 20), &mut back).is_err());
    assert!(device.copy_to_device(&sent, 0x1000).is_err());
    let mut all: Vec<_> = std::iter::from_fn(|| Arc::clone(&device).staging()).collect();
    assert_eq!(all.len(), 4);
    let mut staging = all.pop().unwrap();
    staging.start_to_host(block + 8, 5).unwrap();
    assert!(staging.is_done().unwrap());
    assert_eq!(staging.bytes(), &sent[8..13]);
    staging.bytes_mut()[..3].copy_from_slice(b"abc");
    staging.start_to_device(3, block).unwrap();
    assert!(staging.is_done().unwrap());
    assert!(staging.start_to_host(0x1000, 5).is_err());
    assert!(staging.start_to_host(block, (2 << 20) + 1).is_err());
    drop((all, staging));
    device.copy_to_host(block, &mut back[..3]).unwrap();
    assert_eq!(&back[..3], b"abc");
    assert!(device.free(block) && !device.free(block));
    assert_eq!(
        device.read_global("variable", 8).unwrap().unwrap()[..2],
        [0x22, 0x11]
    );
    assert!(device.read_global("variable", 9).is_err());
    assert_eq!(device.global_size("variable").unwrap(), Some(8));
    assert_eq!(device.read_global("another", 8).unwrap(), None);
    assert_eq!(device.global_size("another").unwrap(), None);
    assert!(device.write_global("another", &[1]).is_err());
    drop(device);
    turn.assert_clean();
}

/// What a copy may still write to is nobody else's.
#[test]
fn memory_of_a_copy_that_does_not_end_stays() {
    let _turn = turn(State::default());
    let device = Arc::new(open(None).unwrap());
    device.load(&image()).unwrap();
    device.reserve_heap(4 << 20).unwrap();
    device.reserve_staging().unwrap();
    let heap = device.allocate(8).unwrap();
    let private = device.allocate_private(8).unwrap();
    with(|state| state.copies_hang = true);
    let mut staging = Arc::clone(&device).staging().unwrap();
    staging.start_to_device(8, heap).unwrap();
    drop(staging);
    drop(device);
    with(|state| {
        assert!(state.live.contains_key(&private));
        let inside = |start: &u64| (*start..*start + state.sizes[start] as u64).contains(&heap);
        let memory = state.live.iter().filter(|(_, what)| **what == "memory");
        assert!(memory.map(|(start, _)| start).any(inside));
        assert_eq!((&state.wrong, state.started), (&Vec::new(), 0));
    });
}

#[test]
fn atomics_are_asked_of_the_link() {
    let _turn = turn(State::default());
    let device = open(None).unwrap();
    device.check_shared_atomics().unwrap();
    with(|state| state.without_atomics = true);
    let said = device.check_shared_atomics().unwrap_err().to_string();
    assert!(said.contains("Compact") && said.contains("Line"), "{said}");
}
