//! Containers that no tool here makes, or not so.

/// A bundle of these names and contents.
pub(super) fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut table = super::super::bundle::MAGIC.to_vec();
    table.extend((entries.len() as u64).to_le_bytes());
    let names: usize = entries.iter().map(|(name, _)| 24 + name.len()).sum();
    let mut at = table.len() + names;
    for (name, data) in entries {
        for number in [at, data.len(), name.len()] {
            table.extend((number as u64).to_le_bytes());
        }
        table.extend(name.as_bytes());
        at += data.len();
    }
    for (_, data) in entries {
        table.extend(*data);
    }
    table
}

/// An offload binary of this version with these architectures and images, not compressed.
pub(super) fn offload(version: u32, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let header = if version < 3 { 32 } else { 40 };
    let mut strings = b"arch\0triple\0amdgcn-amd-amdhsa\0".to_vec();
    let pairs = header + 40 * entries.len();
    let text = pairs + 48 * entries.len();
    let names: Vec<_> = (entries.iter())
        .map(|(name, _)| {
            let at = text + strings.len();
            strings.extend(name.as_bytes());
            strings.push(0);
            at
        })
        .collect();
    let mut image = (text + strings.len()).next_multiple_of(8);
    let mut all = super::super::offload::MAGIC.to_vec();
    all.extend(version.to_le_bytes());
    let size = entries.iter().map(|(_, data)| data.len()).sum::<usize>() + image;
    let mut numbers = vec![size.next_multiple_of(8), header, entries.len()];
    numbers.resize(header / 8 - 1, 0);
    for (i, (_, data)) in entries.iter().enumerate() {
        numbers.extend([1 | 4 << 16, pairs + 48 * i, 2, image, data.len()]);
        image += data.len();
    }
    for ((architecture, _), at) in entries.iter().zip(names) {
        numbers.extend([text, at, architecture.len()]);
        numbers.extend([text + 5, text + 12, 17]);
    }
    for number in numbers {
        all.extend((number as u64).to_le_bytes());
    }
    all.extend(strings);
    all.resize(all.len().next_multiple_of(8), 0);
    for (_, data) in entries {
        all.extend(*data);
    }
    all.resize(all.len().next_multiple_of(8), 0);
    all
}

/// That bundle behind a header of version 1.
pub(super) fn compressed(bundle: &[u8]) -> Vec<u8> {
    let mut all = b"CCOB\x01\0\0\0".to_vec();
    all.extend((bundle.len() as u32).to_le_bytes());
    all.extend([0; 8]);
    all.extend(miniz_oxide::deflate::compress_to_vec_zlib(bundle, 6));
    all
}

/// `bytes` with `number` at `offset`.
pub(super) fn with(bytes: &[u8], offset: usize, number: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, byte) in bytes[offset..].iter_mut().zip(number.to_le_bytes()) {
        *place = byte;
    }
    bytes
}
