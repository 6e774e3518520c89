//! Code objects with nothing but metadata.

use rmpv::Value;

pub(crate) const IMAGE_TARGET: &str = "amdgcn-amd-amdhsa--gfx1100";
/// A global that each image has.
pub(crate) const CLIENT: &str = "variable";

fn map(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Map(entries.map(|(key, value)| (key.into(), value)).collect())
}

/// The metadata of a kernel with these arguments: offset, size, kind.
pub(crate) fn kernel(name: &str, arguments: &[(u32, u32, &str)], size: u32) -> Value {
    let argument = |&(offset, size, kind): &(u32, u32, &str)| {
        map(vec![
            (".offset", offset.into()),
            (".size", size.into()),
            (".value_kind", kind.into()),
        ])
    };
    map(vec![
        (".name", name.into()),
        (".symbol", format!("{name}.kd").into()),
        (
            ".args",
            Value::Array(arguments.iter().map(argument).collect()),
        ),
        (".kernarg_segment_size", size.into()),
        (".group_segment_fixed_size", 512.into()),
        (".private_segment_fixed_size", 1104.into()),
        (".uses_dynamic_stack", true.into()),
        (".wavefront_size", 64.into()),
        (".max_flat_workgroup_size", 768.into()),
        (".vgpr_count", 135.into()),
        (".sgpr_count", 107.into()),
    ])
}

/// A code object for `target` with these kernels.
pub(crate) fn object(target: &str, kernels: Vec<Value>) -> Vec<u8> {
    let metadata = map(vec![
        ("amdhsa.target", target.into()),
        ("amdhsa.kernels", Value::Array(kernels)),
    ]);
    let mut text = Vec::new();
    rmpv::encode::write_value(&mut text, &metadata).unwrap();
    let mut note = Vec::new();
    for number in [7, text.len() as u32, 32] {
        note.extend(number.to_le_bytes());
    }
    note.extend(b"AMDGPU\0\0");
    note.extend(&text);
    note.resize(note.len().next_multiple_of(4), 0);
    // The header, one program header, the note.
    let mut file = vec![0; 64 + 56];
    file[..7].copy_from_slice(b"\x7FELF\x02\x01\x01");
    for (at, half) in [(16, 3_u16), (18, 224), (52, 64), (54, 56), (56, 1)] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    file[20] = 1;
    file[32] = 64;
    file[64] = 4;
    for (at, word) in [
        (64 + 8, 120_u64),
        (64 + 32, note.len() as u64),
        (64 + 40, note.len() as u64),
    ] {
        file[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    file[64 + 48] = 4;
    file.extend(note);
    file
}
