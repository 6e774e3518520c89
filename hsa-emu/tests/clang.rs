//! Programs that clang makes, at every optimisation level, against the host's own arithmetic.

#![allow(clippy::pedantic, reason = "tests")]

mod common;

use common::{End, Session, allocate, clang, device};

/// Work-items of a run.
const ITEMS: usize = 64;
/// Results of a work-item.
const RESULTS: usize = 32;

/// Numbers that are special to somebody, and random ones.
fn inputs(seed: u64, floats: bool) -> Vec<u64> {
    let special: [u64; 24] = [
        0,
        1,
        2,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        0x8000_0000,
        0x7fff_ffff,
        0xffff_ffff,
        0x1_0000_0000,
        31,
        32,
        33,
        63,
        64,
        0x7f80_0000,
        0x7ff0_0000_0000_0000,
        0x7ff8_0000_7fc0_0000,
        0x8000_0000_8000_0000,
        0x0010_0000_0080_0000,
        0x0000_0000_0000_0003,
        0x7fef_ffff_7f7f_ffff,
        0x3ff0_0000_3f80_0000,
        0x000f_ffff_007f_ffff,
    ];
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = state;
        n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    };
    (0..2 * ITEMS)
        .map(|_| match next() % 4 {
            0 => special[next() as usize % special.len()],
            1 if floats => {
                let value = (next() as f64 / u64::MAX as f64 - 0.5) * 1e6;
                value.to_bits() & !0xffff_ffff | u64::from((value as f32).to_bits())
            }
            1 => next() >> (next() % 64),
            _ => next(),
        })
        .collect()
}

/// NaNs are alike: which one comes out is not defined.
fn same(kernel: &str, index: usize, a: u64, b: u64) -> bool {
    if a == b || kernel != "floats" {
        return a == b;
    }
    let double = matches!(index, 4..=7 | 9 | 11 | 13 | 15 | 19 | 20 | 25);
    if double {
        f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()
    } else if matches!(index, 27 | 29) {
        // Made of two.
        true
    } else {
        f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan()
    }
}

/// The result with swapped bytes. At -O0 clang 22 moves only the lower half of a register before it
/// permutes the bytes of all of it (`v_mov_b16 v0.l, v1.l`, then `v_perm_b32` of `v0`): the fault is
/// the compiler's.
const SWAP: usize = 19;

type Kernel = unsafe extern "C" fn(*const u64, *mut u64);

#[test]
fn arithmetic_is_the_hosts() {
    let host = ["-O1", "-shared", "-fPIC", "-ffp-contract=off", "-lm"];
    let Some(host) = clang("programs/numbers.c", &host) else {
        println!("left out: there is no clang");
        return;
    };
    // SAFETY: a library of pure functions.
    let host = unsafe { libloading::Library::new(host) }.expect("the host's library");
    // SAFETY: the variable and the functions have these types.
    let lane: *mut u32 = unsafe { *host.get::<*mut u32>(b"lane").expect("lane") };
    let levels = [
        ("-O0", ""),
        ("-O1", ""),
        ("-O2", ""),
        ("-O3", ""),
        ("-Os", ""),
        ("-O0", "-mwavefrontsize64"),
        ("-O2", "-mwavefrontsize64"),
    ];
    for (level, waves) in levels {
        let mut options = vec![level, "-ffp-contract=off"];
        options.extend((!waves.is_empty()).then_some(waves));
        let image = device("programs/numbers.c", &options).expect("clang");
        let session = Session::new(&image);
        let (input, output) = (allocate(2 * ITEMS * 8), allocate(ITEMS * RESULTS * 8));
        let arguments = [input, output].map(|at| at.expose_provenance() as u64);
        for (kernel, rounds) in [("integers", 40), ("floats", 60), ("moves", 10)] {
            // SAFETY: as above.
            let expected = unsafe { host.get::<Kernel>(kernel.as_bytes()) }.expect(kernel);
            for seed in 0..rounds {
                let numbers = inputs(seed, kernel == "floats");
                // SAFETY: the buffers have as many numbers.
                unsafe {
                    output.write_bytes(0, ITEMS * RESULTS * 8);
                    input
                        .cast::<u64>()
                        .copy_from(numbers.as_ptr(), numbers.len())
                };
                let end = session.launch(kernel, 1, ITEMS as u16, &arguments, 60);
                assert_eq!(end, End::Done, "{kernel} {level}");
                let mut wanted = vec![0u64; ITEMS * RESULTS];
                for n in 0..ITEMS {
                    // SAFETY: the functions write the results of work-item `lane`.
                    unsafe {
                        lane.write(n as u32);
                        expected(numbers.as_ptr(), wanted.as_mut_ptr());
                    }
                }
                for (n, &wanted) in wanted.iter().enumerate() {
                    // SAFETY: as many results.
                    let got = unsafe { output.cast::<u64>().add(n).read() };
                    let (item, index) = (n / RESULTS, n % RESULTS);
                    let (a, b) = (numbers[2 * item], numbers[2 * item + 1]);
                    if kernel == "integers" && index == SWAP && level == "-O0" {
                        continue;
                    }
                    assert!(
                        same(kernel, index, got, wanted),
                        "{kernel} {level} {waves} o[{index}] of {a:#x}, {b:#x}: {got:#x}, not {wanted:#x}"
                    );
                }
            }
        }
    }
}

/// The compiler's fault of GPU-side loops with a branch of three ways: right without optimisation,
/// wrong with it. The day this test fails, the compiler is mended (or the emulator broken).
#[test]
fn the_compilers_fault_is_seen() {
    for (level, expected) in [("-O0", 5), ("-O2", 0)] {
        let Some(image) = device("programs/structurize.c", &[level]) else {
            println!("left out: there is no clang");
            return;
        };
        let session = Session::new(&image);
        let memory = allocate(4096).cast::<u64>();
        let at = memory.expose_provenance() as u64;
        // argv[1] is the text.
        // SAFETY: within the page.
        unsafe {
            memory.add(1).write(at + 64);
            memory
                .cast::<[u8; 6]>()
                .add(0)
                .byte_add(64)
                .write(*b"hello\0");
        }
        let arguments = [2, at, at + 128, at + 256];
        assert_eq!(session.launch("_start", 1, 1, &arguments, 60), End::Done);
        // SAFETY: as above.
        let result = unsafe { memory.byte_add(256).cast::<i32>().read() };
        assert_eq!(result, expected, "clang {level}");
    }
}
