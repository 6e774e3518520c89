//! Decompression that takes no more memory than it is allowed.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use super::super::MAX_IMAGE;
use super::{ContainerError, Sort};

/// How zstd's frames start.
pub(super) const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// The most that a decoder of zstd keeps to look back at: as much as LLVM's tools ask for.
const WINDOW: u64 = 128 << 20;
/// No block of LZ4 becomes more times as long.
const LZ4_RATIO: u64 = 255;

/// How something is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Zlib,
    Zstd,
    /// One block, without a frame.
    Lz4,
}

/// The `size` bytes that `packed` stands for. Memory grows with what comes out, not with what was
/// promised.
pub(super) fn unpack(
    sort: Sort,
    packing: Packing,
    packed: &[u8],
    size: u64,
) -> Result<Vec<u8>, ContainerError> {
    if size > MAX_IMAGE {
        return Err(ContainerError::TooLarge(sort, size));
    }
    let failed = |reason: String| ContainerError::Packed(sort, reason);
    let unpacked = match packing {
        Packing::Zlib => {
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, size as usize)
                .map_err(|error| failed(format!("its zlib stream is damaged: {error}")))?
        }
        Packing::Zstd => zstd(packed, size).map_err(failed)?,
        Packing::Lz4 => {
            let possible = (packed.len() as u64).saturating_mul(LZ4_RATIO);
            if size > possible {
                let length = packed.len();
                return Err(failed(format!(
                    "{length} bytes of LZ4 do not become {size}"
                )));
            }
            let mut unpacked = vec![0; size as usize];
            let length = lz4_flex::block::decompress_into(packed, &mut unpacked)
                .map_err(|error| failed(format!("its LZ4 block is damaged: {error}")))?;
            unpacked.truncate(length);
            unpacked
        }
    };
    if unpacked.len() as u64 == size {
        Ok(unpacked)
    } else {
        let length = unpacked.len();
        Err(failed(format!(
            "it says {size} bytes and {length} come out"
        )))
    }
}

fn zstd(packed: &[u8], size: u64) -> Result<Vec<u8>, String> {
    let damaged = |error: String| format!("its zstd frame is damaged: {error}");
    let decoder = StreamingDecoder::new_with_max_window_size(packed, WINDOW)
        .map_err(|error| damaged(error.to_string()))?;
    let mut unpacked = Vec::new();
    decoder
        .take(size + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| damaged(error.to_string()))?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SORT: Sort = Sort::Bundle;

    /// The same as each method has it; and how many bytes that are.
    fn packed() -> ([(Packing, Vec<u8>); 3], Vec<u8>) {
        let plain = b"gpurpc ".repeat(30);
        // A block of LZ4: the first 7 bytes as they are, the other 203 copied from 7 before.
        let mut lz4 = vec![0x7F];
        lz4.extend_from_slice(b"gpurpc ");
        lz4.extend_from_slice(&[7, 0, 203 - 12 - 4 - 15, 0xC0]);
        lz4.extend_from_slice(&plain[plain.len() - 12..]);
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 6);
        let zstd = ruzstd::encoding::compress_to_vec(
            &plain[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        let all = [
            (Packing::Zlib, zlib),
            (Packing::Zstd, zstd),
            (Packing::Lz4, lz4),
        ];
        (all, plain)
    }

    #[test]
    fn every_method_is_undone() {
        let (all, plain) = packed();
        for (packing, packed) in all {
            let size = plain.len() as u64;
            assert_eq!(unpack(SORT, packing, &packed, size).unwrap(), plain);
        }
    }

    #[test]
    fn wrong_sizes_are_refused_without_memory_for_them() {
        let (all, plain) = packed();
        let right = plain.len() as u64;
        for (packing, packed) in all {
            for size in [
                0,
                right - 1,
                right + 1,
                1 << 29,
                MAX_IMAGE,
                1 << 60,
                u64::MAX,
            ] {
                let said = unpack(SORT, packing, &packed, size)
                    .unwrap_err()
                    .to_string();
                let large = size > MAX_IMAGE;
                assert_eq!(said.contains("1 GiB is the most"), large, "{said}");
                assert!(said.starts_with("is an offload bundle that "), "{said}");
            }
            for length in 0..packed.len() {
                assert!(unpack(SORT, packing, &packed[..length], right).is_err());
            }
        }
    }
}
