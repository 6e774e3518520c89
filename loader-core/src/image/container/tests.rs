//! Containers that their tools made, those that tests make, and both spoilt.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::tests::elf;
use super::*;
use make::{bundle, compressed, offload, with};

mod make;

/// Made by the tools, as `tests/containers/README.md` says.
const BUNDLE: &[u8] = include_bytes!("../../../tests/containers/bundle.bin");
const BUNDLE_V2: &[u8] = include_bytes!("../../../tests/containers/bundle.v2");
const BUNDLE_V3: &[u8] = include_bytes!("../../../tests/containers/bundle.v3");
const OFFLOAD: &[u8] = include_bytes!("../../../tests/containers/offload.v1");
const PLAIN: &[u8] = include_bytes!("../../../tests/containers/plain.fatbin");
const ZSTD: &[u8] = include_bytes!("../../../tests/containers/zstd.fatbin");
const LZ4: &[u8] = include_bytes!("../../../tests/containers/lz4.fatbin");
const ALL: [&[u8]; 7] = [BUNDLE, BUNDLE_V2, BUNDLE_V3, OFFLOAD, PLAIN, ZSTD, LZ4];

fn parse(bytes: &[u8]) -> Container<'_> {
    Container::parse(bytes).unwrap().unwrap()
}

fn refused(bytes: &[u8]) -> String {
    let said = Container::parse(bytes).unwrap_err().to_string();
    assert!(!said.contains('\n'), "{said}");
    said
}

/// The image for this architecture.
fn take(bytes: &[u8], architecture: &str) -> Result<Vec<u8>, String> {
    let fits = |_, other: &str| (other == architecture).then_some(0);
    let container = Container::parse(bytes).map_err(|error| error.to_string())?;
    let container = container.unwrap();
    let image = container.choose("the test", fits);
    image.map_err(|error| error.to_string())
}

#[test]
fn what_is_in_files_of_the_tools() {
    let bundled = "an amdgcn code object for hip amdgcn-amd-amdhsa gfx1100, \
                   an amdgcn code object for hipv4 amdgcn-amd-amdhsa gfx90a:xnack+ \
                   and a cubin for openmp nvptx64-nvidia-cuda-unknown sm_90";
    for bytes in [BUNDLE, BUNDLE_V2, BUNDLE_V3] {
        assert_eq!(parse(bytes).inside(), bundled);
        let mut image = elf(2, 1, 224, 3);
        image[127] = 1;
        assert_eq!(take(bytes, "gfx1100").unwrap(), image);
        image[127] = 2;
        assert_eq!(take(bytes, "gfx90a:xnack+").unwrap(), image);
        assert_eq!(take(bytes, "sm_90").unwrap(), elf(2, 1, 190, 2));
    }
    assert_eq!(
        parse(OFFLOAD).inside(),
        "an amdgcn code object for hip amdgcn-amd-amdhsa gfx1100, PTX text for cuda \
         nvptx64-nvidia-cuda sm_70 and an x86-64 shared object for openmp x86_64-unknown-linux-gnu"
    );
    assert!(take(OFFLOAD, "sm_70").unwrap().starts_with(b".version 8.0"));
    for bytes in [PLAIN, ZSTD, LZ4] {
        assert_eq!(
            parse(bytes).inside(),
            "a cubin for sm_80, a cubin for sm_90a and PTX text for sm_70"
        );
        for architecture in ["sm_80", "sm_90a"] {
            assert_eq!(take(bytes, architecture), take(PLAIN, architecture));
        }
        let ptx = take(bytes, "sm_70").unwrap();
        assert!(ptx.starts_with(b".version 8.0\n.target sm_70"), "{ptx:?}");
    }
}

#[test]
fn versions_that_the_tools_here_do_not_make() {
    let (one, two) = (elf(2, 1, 224, 3), elf(2, 1, 62, 3));
    let entries: [(&str, &[u8]); 3] = [("gfx942", &one), ("x86", &two), ("none", &[])];
    for version in [2, 3] {
        let bytes = offload(version, &entries);
        assert_eq!(
            parse(&bytes).inside(),
            "an amdgcn code object for hip amdgcn-amd-amdhsa gfx942 and an x86-64 shared object for \
             hip amdgcn-amd-amdhsa x86"
        );
        assert_eq!(take(&bytes, "gfx942").unwrap(), one);
        let twice = [bytes, offload(2, &[("gfx1100", &one)])].concat();
        assert_eq!(take(&twice, "gfx1100").unwrap(), one);
    }
    // Version 3, compressed.
    let bytes = offload(3, &entries);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    for packed in [
        miniz_oxide::deflate::compress_to_vec_zlib(&bytes[40..], 6),
        ruzstd::encoding::compress_to_vec(&bytes[40..], level),
    ] {
        let header = with(&bytes[..40], 32, bytes.len() as u64);
        let all = [with(&header, 8, 40 + packed.len() as u64), packed].concat();
        assert_eq!(take(&all, "gfx942").unwrap(), one);
        assert!(refused(&with(&all, 32, 1 << 60)).contains("1 GiB is the most"));
        assert!(refused(&with(&all, 32, 39)).contains("its header"));
        assert!(refused(&with(&all, 32, 50)).contains("cannot be unpacked"));
    }
    assert_eq!(take(&compressed(BUNDLE), "sm_90"), take(BUNDLE, "sm_90"));
}

#[test]
fn one_container_within_another() {
    let image = elf(2, 1, 224, 3);
    let inner = offload(2, &[("", &image)]);
    let packed = compressed(&bundle(&[("hip-amdgcn-amd-amdhsa--gfx1100", &image)]));
    let outer = bundle(&[
        ("host-x86_64-unknown-linux-gnu-", &[]),
        ("hip-amdgcn-amd-amdhsa--gfx942", &inner),
        ("openmp-nvptx64-nvidia-cuda--", ZSTD),
        ("openmp-amdgcn-amd-amdhsa--gfx90a", &packed),
    ]);
    assert_eq!(
        parse(&outer).inside(),
        "an amdgcn code object for hip amdgcn-amd-amdhsa gfx942, a cubin for openmp \
         nvptx64-nvidia-cuda sm_80, a cubin for openmp nvptx64-nvidia-cuda sm_90a, PTX text for \
         openmp nvptx64-nvidia-cuda sm_70 and an amdgcn code object for hip amdgcn-amd-amdhsa gfx1100"
    );
    assert_eq!(take(&outer, "gfx942").unwrap(), image);
    assert_eq!(take(&outer, "gfx1100").unwrap(), image);
    assert_eq!(take(&outer, "sm_90a"), take(PLAIN, "sm_90a"));
    let third = offload(2, &[("", &outer)]);
    assert_eq!(
        refused(&third),
        "is an offload binary with an offload binary in an offload bundle in it; one container \
         within another is the most"
    );
}

#[test]
fn the_best_entry_is_taken_or_all_are_listed() {
    let image = elf(2, 1, 224, 3);
    let numbered = |number: u8| {
        let mut image = image.clone();
        image[127] = number;
        image
    };
    let (one, two) = (numbered(1), numbered(2));
    let bytes = bundle(&[("hip-a-b-c--low", &one), ("hip-a-b-c--high", &two)]);
    let fits = |low, high| {
        move |kind, architecture: &str| {
            assert_eq!(kind, ImageKind::AmdGpu);
            if architecture == "low" { low } else { high }
        }
    };
    let choose = |low, high| {
        let chosen = parse(&bytes).choose("a device", fits(low, high));
        chosen.map_err(|error| error.to_string())
    };
    assert_eq!(choose(Some(1), Some(2)).unwrap(), two);
    assert_eq!(choose(Some(2), Some(1)).unwrap(), one);
    assert_eq!(choose(None, Some(0)).unwrap(), two);
    assert_eq!(
        choose(None, None).unwrap_err(),
        "is an offload bundle that holds an amdgcn code object for hip a-b-c low and an amdgcn code \
         object for hip a-b-c high; a device runs none of that"
    );
    assert_eq!(
        choose(Some(3), Some(3)).unwrap_err(),
        "is an offload bundle that holds an amdgcn code object for hip a-b-c low and another that \
         fits as well; a device can run only one of them"
    );
    let many: Vec<_> = (0..20).map(|_| ("hip-a-b-c--low", &one[..])).collect();
    let said = take(&bundle(&many), "other").unwrap_err();
    assert!(said.contains(" and 4 more; the test runs"), "{said}");
    assert!(
        take(&bundle(&[("host-a", &[])]), "x")
            .unwrap_err()
            .contains("holds nothing;")
    );
}

#[test]
fn what_is_no_image_is_listed_and_not_taken() {
    let object = elf(2, 1, 62, 1);
    let long = "x".repeat(500);
    let bytes = bundle(&[
        ("host-x86_64-unknown-linux-gnu-", &object),
        ("openmp-nvptx64-nvidia-cuda--sm_90", b"BC\xC0\xDE...."),
        ("hip-spirv64-amd-amdhsa--", b"\x03\x02\x23\x07"),
        (&long, b"\0"),
    ]);
    let said = parse(&bytes)
        .choose("a device", |_, _| Some(0))
        .unwrap_err();
    let expected = format!(
        "is an offload bundle that holds an x86-64 object file that is not linked yet for host \
         x86_64-unknown-linux-gnu, LLVM bitcode for openmp nvptx64-nvidia-cuda sm_90, SPIR-V for hip \
         spirv64-amd-amdhsa and something unknown for {}...; a device runs none of that",
        &long[..80]
    );
    assert_eq!(said.to_string(), expected);
    // The one that fits is told of even if it is spoilt.
    let mut cut = elf(2, 1, 224, 3);
    cut.truncate(90);
    let said = take(
        &bundle(&[("hip-amdgcn-amd-amdhsa--gfx942", &cut)]),
        "gfx942",
    )
    .unwrap_err();
    assert!(
        said.contains("whose entry an amdgcn code object for hip"),
        "{said}"
    );
    assert!(said.contains("cut short"), "{said}");
}

#[test]
fn numbers_that_cannot_be_are_named() {
    let image = elf(2, 1, 224, 3);
    let one = offload(2, &[("gfx942", &image)]);
    for (bytes, words) in [
        (with(BUNDLE, 24, 1 << 60), "more than 4096 entries"),
        (with(BUNDLE, 24, 400), "damaged ("),
        (with(BUNDLE, 32, 1 << 60), "the place of an entry"),
        (with(BUNDLE, 40, 1 << 60), "the place of an entry"),
        (with(BUNDLE, 40, u64::MAX), "the place of an entry"),
        (with(BUNDLE, 48, 1 << 60), "the name of an entry"),
        (with(BUNDLE, 48, u64::MAX), "the name of an entry"),
        (with(BUNDLE, 40, 300), "bytes in common"),
        (BUNDLE[..31].to_vec(), "its header"),
        (BUNDLE[..60].to_vec(), "the name of an entry"),
        (BUNDLE[..BUNDLE.len() - 1].to_vec(), "the place of an entry"),
        (with(BUNDLE_V3, 8, 1 << 60), "its size"),
        (
            with(BUNDLE_V3, 16, 1 << 60),
            "takes 1152921504606846976 bytes unpacked",
        ),
        (with(BUNDLE_V3, 16, 649), "it says 649 bytes and"),
        (
            with(BUNDLE_V3, 16, 1 << 30),
            "it says 1073741824 bytes and 650 come out",
        ),
        (with(BUNDLE_V3, 4, 1 << 16 | 4), "version 4"),
        (with(BUNDLE_V3, 4, 7 << 16 | 3), "method 7"),
        (BUNDLE_V2[..30].to_vec(), "its size"),
        (compressed(BUNDLE_V2), "no bundle"),
        (with(OFFLOAD, 4, 9 | 0x110 << 32), "version 9"),
        (with(OFFLOAD, 8, 1 << 60), "its size"),
        (with(OFFLOAD, 8, 8), "its size"),
        (with(OFFLOAD, 16, 1 << 60), "its entries"),
        (with(OFFLOAD, 40, 1 << 60), "its strings"),
        (with(OFFLOAD, 48, 1 << 60), "its strings"),
        (with(OFFLOAD, 48, u64::MAX), "its strings"),
        (with(OFFLOAD, 56, 1 << 60), "the place of an image"),
        (with(OFFLOAD, 64, 1 << 60), "the place of an image"),
        (with(OFFLOAD, 56, 40), "bytes in common"),
        (with(OFFLOAD, 72, 1 << 60), "a string"),
        (
            [OFFLOAD, b"more"].concat(),
            "something else stands behind it",
        ),
        (with(&one, 24, 1 << 60), "more than 4096 entries"),
        (with(&one, 24, 400), "its entries"),
        (with(&one, 88, 1 << 60), "a string"),
        (with(PLAIN, 4, 2 | 16 << 16), "version 2"),
        (with(PLAIN, 4, 1 | 8 << 16), "its size"),
        (with(PLAIN, 8, 1 << 60), "its size"),
        (with(PLAIN, 24, 1 << 60), "the size of an entry"),
        (with(PLAIN, 20, 8), "the size of an entry"),
        (PLAIN[..PLAIN.len() - 1].to_vec(), "its size"),
        (with(ZSTD, 32, 1 << 30), "the size of an entry"),
        (with(ZSTD, 56, 1 << 15 | 1 << 13), "method 40960"),
    ] {
        let said = refused(&bytes);
        assert!(said.contains(words), "{said} should say {words}");
    }
    // Sizes of what is compressed are looked at when it is taken.
    for (bytes, number, words) in [
        (ZSTD, 1 << 60, "1 GiB is the most"),
        (LZ4, 1 << 60, "1 GiB is the most"),
        (ZSTD, 1 << 30, "and 2472 come out"),
        (LZ4, 1 << 30, "706 bytes of LZ4 do not become"),
    ] {
        let said = take(&with(bytes, 72, number), "sm_80").unwrap_err();
        assert!(said.contains(words), "{said} should say {words}");
    }
    let count = bundle(&vec![("", &b""[..]); 4097]);
    assert!(refused(&count).contains("more than 4096 entries"));
}

/// Were each entry looked at, this would take minutes.
#[test]
fn many_entries_of_the_same_bytes_are_refused_at_once() {
    let (count, size) = (4096_u64, 3_u64 << 19);
    // An entry that is text to its end, all of it comments.
    let comments = b"//\n".repeat(size as usize / 3);
    let mut bundle = bundle(&vec![("", &b""[..]); count as usize]);
    let start = bundle.len() as u64;
    let mut offload = offload(2, &vec![("", &b""[..]); count as usize]);
    let behind = offload.len() as u64;
    for i in 0..count as usize {
        bundle = put(bundle, 32 + 24 * i, [start, size]);
        offload = put(offload, 32 + 40 * i + 24, [behind, size]);
    }
    offload = put(offload, 8, [behind + size]);
    bundle.extend_from_slice(&comments);
    offload.extend_from_slice(&comments);
    let packed = compressed(&bundle);
    assert!(packed.len() < 64 << 10, "{}", packed.len());
    let begun = Instant::now();
    for bytes in [bundle, packed, offload] {
        let said = refused(&bytes);
        assert!(said.contains("bytes in common"), "{said}");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// `bytes` with these numbers from `offset` on.
fn put<const N: usize>(mut bytes: Vec<u8>, offset: usize, numbers: [u64; N]) -> Vec<u8> {
    for (place, number) in bytes[offset..].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

#[test]
fn what_is_unpacked_counts_together() {
    let mut budget = Budget::new();
    assert!(budget.unpacked(Sort::Bundle, 600 << 20).is_ok());
    let said = budget.unpacked(Sort::Fatbin, 600 << 20).unwrap_err();
    assert!(said.to_string().contains("1 GiB is the most"), "{said}");
    assert!(budget.entries(Sort::Bundle, MOST_ENTRIES).is_ok());
    assert!(budget.entries(Sort::Fatbin, 1).is_err());
}

/// Everything that is done with a file, whatever it is.
fn use_all(bytes: &[u8]) {
    let Ok(Some(container)) = Container::parse(bytes) else {
        return;
    };
    let _ = container.inside();
    assert!(container.entries().len() as u64 <= MOST_ENTRIES);
    let _ = container.choose("a device", |_, _| Some(0));
    for entry in container.entries() {
        let _ = entry.unpack(container.sort());
    }
}

#[test]
fn every_number_of_every_file_may_be_anything() {
    for bytes in ALL {
        for offset in 0..bytes.len().min(700) {
            for number in [0, 1 << 60, u64::MAX, 1 << 31] {
                use_all(&with(bytes, offset, number));
            }
            use_all(&bytes[..offset]);
        }
    }
}

proptest! {
    #[test]
    fn spoilt_files_are_no_problem(
        which in 0..ALL.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 1..=8_usize), 0..6),
        small in any::<bool>(),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = ALL[which].to_vec();
        for (at, number, width) in edits {
            let number = if small { number % 256 } else { number };
            let at = at.index(bytes.len());
            for (place, byte) in bytes[at..].iter_mut().zip(&number.to_le_bytes()[..width]) {
                *place = *byte;
            }
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        use_all(&bytes);
        // The same within something.
        use_all(&bundle(&[("hip-amdgcn-amd-amdhsa--gfx1100", &bytes)]));
    }
}
