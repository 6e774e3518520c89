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

    /// "gpurpc" 200 times over, as the tools of each method have it.
    const TIMES: usize = 200;
    const ZLIBS: &[u8] = &[];
    const ZSTDS: &[u8] = &[];
}
