//! Code objects that are sound, damaged, and made to take long.

use object::elf::PT_NOTE;

use super::*;

#[test]
fn targets_fit_by_processor_and_features() {
    let agent = "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-";
    for (image, expected) in [
        ("amdgcn-amd-amdhsa--gfx90a", true),
        ("amdgcn-amd-amdhsa--gfx90a:xnack-", true),
        ("amdgcn-amd-amdhsa--gfx90a:xnack+", false),
        ("amdgcn-amd-amdhsa--gfx90", false),
        ("amdgcn-amd-amdhsa--gfx1100", false),
    ] {
        assert_eq!(fits(image, agent), expected, "{image}");
    }
    assert_eq!(processor(agent), "gfx90a:sramecc+:xnack-");
    assert_eq!(processor("gfx1100"), "gfx1100");
}

#[test]
fn the_closest_target_is_first() {
    let isas = [
        "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-".to_owned(),
        "amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-".to_owned(),
    ];
    let ranks = [
        "gfx942:sramecc+:xnack-",
        "gfx942:xnack-",
        "gfx942",
        "gfx9-4-generic:xnack-",
        "gfx9-4-generic",
        "",
    ]
    .map(|architecture| rank(architecture, &isas));
    assert!(ranks.is_sorted_by(|a, b| a > b && b.is_some()), "{ranks:?}");
    for architecture in [
        "gfx942:xnack+",
        "gfx90a",
        "gfx11-generic",
        "sm_90",
        "gfx942:",
    ] {
        assert_eq!(rank(architecture, &isas), None, "{architecture}");
    }
}

#[test]
fn a_name_of_two_places_is_no_ones() {
    let symbols = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("c", 4), ("a", 1)];
    let found = unambiguous(&symbols);
    assert_eq!(found, [("b".into(), 2), ("c".into(), 4)].into());
}

/// A code object with these segments (type, flags, offset, size), of which the offsets count from
/// behind their headers, and with `symbols` of the same name of a million bytes.
fn object(segments: &[[u64; 4]], behind: &[u8], symbols: usize) -> Vec<u8> {
    let mut file = vec![0; 64];
    let start = (64 + 56 * segments.len()) as u64;
    for [kind, flags, offset, size] in segments {
        file.extend((kind | flags << 32).to_le_bytes());
        for number in [start + offset, 0, 0, *size, *size, 4] {
            file.extend(number.to_le_bytes());
        }
    }
    file.extend(behind);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = [file.len(), 24 * (symbols + 1)];
    file.extend([0; 24]);
    for _ in 0..symbols {
        file.extend([1, 0, 0, 0, 0x11, 0, 1, 0]);
        file.extend([0; 16]);
    }
    let names = [file.len(), if symbols == 0 { 1 } else { 1_000_002 }];
    file.push(0);
    file.resize(names[0] + names[1] - 1, b'x');
    file.push(0);
    file.resize(file.len().next_multiple_of(8), 0);
    let headers = file.len() as u64;
    file.extend([0; 64]);
    for (kind, place, link, each) in [(11_u64, table, 2_u64, 24_u64), (3, names, 0, 0)] {
        file.extend((kind << 32).to_le_bytes());
        file.extend([0; 16]);
        file.extend(place.map(|n| (n as u64).to_le_bytes()).concat());
        file.extend([link | 1 << 32, 8, each].map(u64::to_le_bytes).concat());
    }
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[32] = 64;
    file[40..48].copy_from_slice(&headers.to_le_bytes());
    let count = segments.len() as u16;
    for (at, half) in [
        (16, 3),
        (18, 224),
        (20, 1),
        (52, 64),
        (54, 56),
        (56, count),
        (58, 64),
        (60, 3),
        (62, 2),
    ] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    file
}

/// A note of this owner that describes this.
fn note(owner: [u8; 8], description: &[u8]) -> Vec<u8> {
    let sizes = [7, description.len() as u32, METADATA];
    let mut note = sizes.map(u32::to_le_bytes).concat();
    note.extend(owner);
    note.extend(description);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// The note of metadata that names a target.
fn target() -> Vec<u8> {
    let map = Value::Map(vec![("amdhsa.target".into(), TRIPLE.into())]);
    let mut description = Vec::new();
    rmpv::encode::write_value(&mut description, &map).unwrap();
    note(*b"AMDGPU\0\0", &description)
}

#[test]
fn what_is_read_follows_the_size_of_the_image() {
    let behind = target();
    let size = behind.len() as u64;
    let data = [u64::from(PT_LOAD), u64::from(PF_W), 0, size];
    let of_target = [u64::from(PT_NOTE), 0, 0, size];
    let read =
        |segments: &[[u64; 4]], symbols| CodeObject::parse(&object(segments, &behind, symbols));
    let good = read(&[of_target, data], 1).unwrap();
    assert_eq!((&*good.target, good.data.len()), (TRIPLE, 1));
    assert_eq!(good.globals, [("x".repeat(1_000_000), 0)].into());
    let said = read(&[of_target], 2000).unwrap_err();
    assert!(said.contains("has names that are the same bytes"), "{said}");
    let mut many = vec![data; MOST_DATA + 1];
    many.push(of_target);
    let said = read(&many, 0).unwrap_err();
    assert!(said.contains("65 segments that are written to"), "{said}");
}

/// Were the notes of each segment read, this would take minutes.
#[test]
fn notes_are_read_once() {
    let others = note(*b"OTHERS\0\0", &[]).repeat(200_000);
    let segment = [u64::from(PT_NOTE), 0, 0, others.len() as u64];
    let begun = std::time::Instant::now();
    let said = CodeObject::parse(&object(&vec![segment; 60_000], &others, 0)).unwrap_err();
    assert!(said.contains("has notes that are the same bytes"), "{said}");
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}

#[test]
fn metadata_of_any_size_is_not_read() {
    let large = note(*b"AMDGPU\0\0", &vec![0; MOST_METADATA + 4]);
    let segment = [u64::from(PT_NOTE), 0, 0, large.len() as u64];
    let said = CodeObject::parse(&object(&[segment], &large, 0)).unwrap_err();
    assert!(
        said.contains("bytes of metadata, and 64 MiB is the most"),
        "{said}"
    );
}

#[test]
fn damaged_metadata_is_named() {
    let kernel = |entries: &[(&str, Value)]| {
        let entries = entries
            .iter()
            .map(|(key, value)| ((*key).into(), value.clone()));
        KernelInfo::new(&Value::Map(entries.collect()))
    };
    let named = (".name", Value::from("_start"));
    assert_eq!(kernel(std::slice::from_ref(&named)).unwrap().name, "_start");
    for (key, value) in [
        (".kernarg_segment_size", Value::from(1 << 20)),
        (".wavefront_size", Value::from(-1)),
        (".args", Value::Array(vec![Value::Map(Vec::new())])),
    ] {
        let said = kernel(&[named.clone(), (key, value)]).unwrap_err();
        assert!(said.contains(key) && said.contains("_start"), "{said}");
    }
}
