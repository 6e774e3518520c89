//! Arguments and environment as a device program finds them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// `argv` and `envp` in one block of memory: the pointers of `argv`, null last, those of `envp`,
/// null last, then the strings that they point to.
///
/// ```
/// use loader_core::block::Block;
///
/// let arguments = ["image".into(), "one".into()];
/// let block = Block::new(&arguments, &["A=1".into()]);
/// assert_eq!(block.argc(), 2);
/// let bytes = block.at(0x1000);
/// assert_eq!(bytes.len(), 5 * 8 + "image\0one\0A=1\0".len());
/// assert_eq!(bytes[..8], (0x1000 + 5 * 8_u64).to_le_bytes());
/// ```
#[derive(Clone, Debug)]
pub struct Block {
    argc: usize,
    /// Where each string starts, from the first string; `None` for the two nulls.
    pointers: Vec<Option<usize>>,
    strings: Vec<u8>,
}

impl Block {
    /// The block for these arguments (the first is the image's path) and this environment
    /// (`NAME=VALUE`). A string ends at its first NUL, should it have one.
    pub fn new(arguments: &[OsString], environment: &[OsString]) -> Self {
        let mut strings = Vec::new();
        let mut add = |text: &OsString| {
            let start = strings.len();
            let bytes = text.as_bytes();
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            strings.extend_from_slice(&bytes[..end]);
            strings.push(0);
            Some(start)
        };
        let mut pointers: Vec<_> = arguments.iter().map(&mut add).collect();
        pointers.push(None);
        pointers.extend(environment.iter().map(&mut add));
        pointers.push(None);
        Self {
            argc: arguments.len(),
            pointers,
            strings,
        }
    }

    /// How many arguments there are.
    ///
    /// # Panics
    /// If there are more than fit an `i32`; no system passes as many.
    pub fn argc(&self) -> i32 {
        i32::try_from(self.argc).expect("fewer arguments than an i32 counts")
    }

    /// Bytes of the block.
    pub fn size(&self) -> usize {
        self.pointers.len() * 8 + self.strings.len()
    }

    /// Where `envp` starts, from the block's start; `argv` starts there.
    pub fn envp(&self) -> u64 {
        (self.argc as u64 + 1) * 8
    }

    /// The block as it must lie at device address `base`.
    pub fn at(&self, base: u64) -> Vec<u8> {
        let first = base + self.pointers.len() as u64 * 8;
        let mut bytes = Vec::with_capacity(self.size());
        for pointer in &self.pointers {
            let address = pointer.map_or(0, |start| first + start as u64);
            bytes.extend_from_slice(&address.to_le_bytes());
        }
        bytes.extend_from_slice(&self.strings);
        bytes
    }
}

/// This process's whole environment, as `NAME=VALUE`.
pub fn host_environment() -> Vec<OsString> {
    let join = |name: &OsStr, value: &OsStr| {
        OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    std::env::vars_os()
        .map(|(name, value)| join(&name, &value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads the strings of the array at `address` as a device would.
    fn strings(bytes: &[u8], base: u64, address: u64) -> Vec<OsString> {
        let offset = |address: u64| usize::try_from(address - base).unwrap();
        bytes[offset(address)..]
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .take_while(|&pointer| pointer != 0)
            .map(|pointer| {
                let text = &bytes[offset(pointer)..];
                let end = text.iter().position(|&b| b == 0).unwrap();
                OsString::from_vec(text[..end].to_vec())
            })
            .collect()
    }

    proptest! {
        #[test]
        fn a_device_finds_what_was_put_in(
            arguments in prop::collection::vec(prop::collection::vec(1_u8.., 0..20), 0..9),
            environment in prop::collection::vec(prop::collection::vec(1_u8.., 0..20), 0..9),
            page in 0_u64..1 << 40,
        ) {
            let os = |list: Vec<Vec<u8>>| list.into_iter().map(OsString::from_vec).collect();
            let (arguments, environment): (Vec<_>, Vec<_>) = (os(arguments), os(environment));
            let base = page * 4096;
            let block = Block::new(&arguments, &environment);
            let bytes = block.at(base);
            prop_assert_eq!(bytes.len(), block.size());
            prop_assert_eq!(block.argc() as usize, arguments.len());
            prop_assert_eq!(strings(&bytes, base, base), arguments);
            prop_assert_eq!(strings(&bytes, base, base + block.envp()), environment);
        }
    }

    #[test]
    fn a_nul_ends_a_string() {
        let block = Block::new(&[OsString::from("a\0b")], &[]);
        assert_eq!(&block.at(0)[24..], b"a\0");
    }
}
