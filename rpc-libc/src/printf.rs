//! C's formatted output: an engine that is usable by itself, and the services over it.
//!
//! ```
//! use rpc_libc::printf::{Form, block_size, format};
//!
//! let text = b"%s is %.2f\n";
//! let mut block = 0x1000_u64.to_le_bytes().to_vec();
//! block.extend(3.14159_f64.to_le_bytes());
//! assert_eq!(block_size(text, Form::Natural), block.len());
//! // The first argument is an address on the device: who calls knows what is there.
//! let printed = format(text, &block, Form::Natural, |_| b"pi".to_vec());
//! assert_eq!(printed.unwrap(), b"pi is 3.14\n");
//! ```
//!
//! # What differs from a host's C library
//!
//! What is not in this table is, byte for byte, what glibc prints in the locale `C.UTF-8`.
//!
//! | format | here |
//! |---|---|
//! | an unknown conversion, `%m`, `%1$d`, `%'d`, a `%` at the end | off: printed as it stands, up to its first letter that fits nowhere; only its stars take arguments |
//! | `%n` | off: printed as it stands; its pointer is taken, and nothing is written there |
//! | `%ls` | off: printed as it stands; its pointer is taken. Strings come over the wire up to their first zero byte, which a wide one has inside |
//! | `%%` with flags, width, precision or length | `%`, always |
//! | `%p` of a null pointer | `(nullptr)`, as LLVM's libc prints it on the device |
//! | `%#g` of what is rounded up to a power of ten | all digits, as C wants it: `1.0e+02` for `%#.2g` of 99.5, where glibc forgets the zeros |
//! | `%lc` | UTF-8 in every locale; what is no character is an error |
//! | `%Lf`, `%Le`, `%Lg`, `%La` | the argument is a `double`: the GPU has no longer one |
//! | `%w8d`, `%w16d`, `%w32d`, `%w64d`, `%wf8d` and so on | C23's, the fast types as wide as the exact ones, as on clang's GPU targets; other sizes are unknown conversions |
//! | a text longer than the service's longest message, or of more than 2147483647 bytes | an error, as the latter is in C |
//! | a format or string without its 0, a block of arguments that is too short | an error, not memory that belongs to something else |
//!
//! An error is the result -1, and nothing of that lane is printed.

use thiserror::Error;

mod arguments;
mod conversion;
mod draft;
mod float;
mod integer;
mod parse;
mod service;
mod text;

pub use arguments::{Argument, Form, block_size};
pub use conversion::{Base, Conversion, Count, Flags, Piece, Style, What};
pub use draft::{Draft, MAX_TEXT};
pub use parse::{Pieces, pieces};
pub(crate) use service::install;
pub use service::{NoStreams, Streams, Written, install_with};
pub use text::Room;

/// Why a format makes no text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The format asks for more arguments than there are.
    #[error("the format asks for {needed} bytes of arguments and more, and there are {there}")]
    Short {
        /// The end of the first argument that is missing.
        needed: usize,
        /// The block's bytes.
        there: usize,
    },
    /// The text is longer than it may be, or than there is memory for.
    #[error("the text is too long: there is no room for it")]
    TooLong,
    /// The argument of `%lc`.
    #[error("{code:#x} is not a character: Unicode has none of this number")]
    Character {
        /// What it was.
        code: u32,
    },
    /// A format or a string ends without its 0.
    #[error("the message is no C string: it has no 0 at its end")]
    Unterminated,
}

/// What `format`, without its NUL, makes of the arguments in `block`.
///
/// `string` gives the string at a device address, without its NUL; it is asked for the strings of
/// all `%s` but null ones, from the last to the first.
///
/// # Errors
/// When the block is too short, the text is longer than [`MAX_TEXT`], or a `%lc` is no character.
pub fn format<S: AsRef<[u8]>>(
    format: &[u8],
    block: &[u8],
    form: Form,
    mut string: impl FnMut(u64) -> S,
) -> Result<Vec<u8>, Error> {
    let mut draft = Draft::new(format, block, form, (MAX_TEXT, ()))?;
    while let Some(address) = draft.wanted() {
        draft.supply(string(address).as_ref())?;
    }
    draft.finish().map(|(text, ())| text)
}
