//! Files that hold several images, of which a device takes the one that fits it.
//!
//! Which sorts there are is in [`Sort`]. All numbers in them are little-endian, and none of them is
//! believed: what lies outside the file, over something else or is too large is an error with its
//! name.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

use super::{ImageError, ImageKind};

mod bundle;
mod entry;
mod fatbin;
mod offload;
mod read;
#[cfg(test)]
mod tests;
mod unpack;

pub use entry::Entry;
use read::Budget;

/// The most entries of a file, those of containers within it included.
pub const MOST_ENTRIES: u64 = 4096;
/// The most entries that a sentence lists.
const LISTED: usize = 16;

/// The sorts of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// What `clang-offload-bundler` makes, compressed or not.
    Bundle,
    /// What `llvm-offload-binary`, formerly `clang-offload-packager`, makes; perhaps several, one
    /// behind the other.
    OffloadBinary,
    /// What NVIDIA's `fatbinary` makes, and `nvcc -fatbin` by it.
    Fatbin,
}

impl Sort {
    /// The sort with its article, for sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bundle => "an offload bundle",
            Self::OffloadBinary => "an offload binary",
            Self::Fatbin => "a CUDA fatbin",
        }
    }

    /// The sort of the container that `bytes` start as, if they do.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        if starts(bundle::MAGIC) || starts(bundle::COMPRESSED) {
            Some(Self::Bundle)
        } else if starts(offload::MAGIC) {
            Some(Self::OffloadBinary)
        } else if starts(fatbin::MAGIC) {
            Some(Self::Fatbin)
        } else {
            None
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why no image comes from a container; to be put behind its path.
#[derive(Debug, Error)]
pub enum ContainerError {
    /// It ends too early, or says what cannot be.
    #[error("is {0} that is cut short or damaged ({1}); copy or build it again")]
    Damaged(Sort, &'static str),
    /// It is of a version that is not known.
    #[error(
        "is {0} of version {1}, which is not known here; make it with another version of its tool"
    )]
    Version(Sort, u64),
    /// It is compressed by a method that is not known.
    #[error(
        "is {0} compressed by method {1}, which is not known here; make it without compression"
    )]
    Method(Sort, u64),
    /// It, or an entry, is larger than any image.
    #[error("is {0} that takes {1} bytes unpacked; 1 GiB is the most")]
    TooLarge(Sort, u64),
    /// It has more than [`MOST_ENTRIES`] entries.
    #[error("is {0} of more than {MOST_ENTRIES} entries, which is the most")]
    TooMany(Sort),
    /// It is in a container that is in a container.
    #[error("is {0} with {1} in {2} in it; one container within another is the most")]
    Nested(Sort, Sort, Sort),
    /// What is compressed cannot be unpacked.
    #[error("is {0} that cannot be unpacked: {1}")]
    Packed(Sort, String),
    /// Nothing in it is for the device.
    #[error("is {sort} that holds {inside}; {device} runs none of that")]
    NoneFits {
        /// Which sort.
        sort: Sort,
        /// Its entries.
        inside: String,
        /// What it was to run on.
        device: String,
    },
    /// There is no device for anything in it.
    #[error("is {sort} that holds {inside}; no device is there for any of that: {reasons}")]
    NoDevice {
        /// Which sort.
        sort: Sort,
        /// Its entries.
        inside: String,
        /// What is wrong with each device that was looked for.
        reasons: String,
    },
    /// Two entries fit alike.
    #[error(
        "is {sort} that holds {entry} and another that fits as well; {device} can run only one of them"
    )]
    Alike {
        /// Which sort.
        sort: Sort,
        /// What the entries say of themselves.
        entry: String,
        /// What it was to run on.
        device: String,
    },
    /// The entry that fits is no image after all.
    #[error("is {sort} whose entry {entry} {error}")]
    Entry {
        /// Which sort.
        sort: Sort,
        /// What the entry says of itself.
        entry: String,
        /// What is wrong with it.
        error: Box<ImageError>,
    },
}

/// A file that holds images.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    sort: Sort,
    entries: Vec<Entry<'a>>,
}

impl<'a> Container<'a> {
    /// Reads the tables of the container that `bytes` are; `None` if they are none. Entries that are
    /// containers themselves are replaced by what is in them.
    ///
    /// # Errors
    /// When the tables say what cannot be.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, ContainerError> {
        let Some(sort) = Sort::of(bytes) else {
            return Ok(None);
        };
        let mut budget = Budget::new();
        let mut entries = Vec::new();
        for outer in parse_one(sort, bytes, &mut budget)? {
            let Some(inner) = outer.container() else {
                entries.push(outer);
                continue;
            };
            let (names, data) = outer.into_parts();
            let found = match data {
                Cow::Borrowed(data) => parse_one(inner, data, &mut budget)?,
                Cow::Owned(data) => owned(parse_one(inner, &data, &mut budget)?),
            };
            for entry in found {
                if let Some(third) = entry.container() {
                    return Err(ContainerError::Nested(sort, third, inner));
                }
                entries.push(entry.within(&names));
            }
        }
        Ok(Some(Self { sort, entries }))
    }

    /// Which sort it is.
    pub const fn sort(&self) -> Sort {
        self.sort
    }

    /// What is in it, in its order, without what is empty.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// Whether an entry is an image of this kind.
    pub fn holds(&self, kind: ImageKind) -> bool {
        self.entries.iter().any(|entry| entry.image() == Some(kind))
    }

    /// The bytes of the entry that fits best: `fits` says of a kind and an architecture, as the entry
    /// has it (`gfx90a:xnack+`, `sm_90a`, empty if it says none), how well its code runs on `device`,
    /// the higher the better, and `None` if it does not.
    ///
    /// # Errors
    /// When none fits, with a list of what there is; when two fit best; when the one that fits cannot
    /// be unpacked or is no image.
    pub fn choose(
        &self,
        device: &str,
        fits: impl Fn(ImageKind, &str) -> Option<u32>,
    ) -> Result<Vec<u8>, ContainerError> {
        let rank = |entry: &Entry<'_>| fits(entry.image()?, entry.architecture());
        let ranked: Vec<_> = (self.entries.iter())
            .filter_map(|entry| Some((rank(entry)?, entry)))
            .collect();
        let best = ranked.iter().map(|(rank, _)| *rank).max();
        let mut chosen = ranked.iter().filter(|(rank, _)| Some(*rank) == best);
        let (sort, device) = (self.sort, device.to_owned());
        let Some((_, entry)) = chosen.next() else {
            let inside = self.inside();
            return Err(ContainerError::NoneFits {
                sort,
                inside,
                device,
            });
        };
        if chosen.next().is_some() {
            let entry = entry.to_string();
            return Err(ContainerError::Alike {
                sort,
                entry,
                device,
            });
        }
        let image = entry.unpack(sort)?;
        match super::recognise(&image) {
            Ok(_) => Ok(image),
            Err(error) => Err(ContainerError::Entry {
                sort,
                entry: entry.to_string(),
                error: Box::new(error),
            }),
        }
    }

    /// What is in it, for sentences.
    pub fn inside(&self) -> String {
        let mut words: Vec<_> = (self.entries.iter().take(LISTED))
            .map(ToString::to_string)
            .collect();
        match self.entries.len() {
            0 => return "nothing".to_owned(),
            1..=LISTED => {}
            all => words.push(format!("{} more", all - LISTED)),
        }
        match words.as_slice() {
            [one] => one.clone(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
            [] => String::new(),
        }
    }
}

/// The entries of a container, whatever they are.
fn parse_one<'a>(
    sort: Sort,
    bytes: &'a [u8],
    budget: &mut Budget,
) -> Result<Vec<Entry<'a>>, ContainerError> {
    match sort {
        Sort::Bundle => bundle::entries(bytes, budget),
        Sort::OffloadBinary => offload::entries(bytes, budget),
        Sort::Fatbin => fatbin::entries(bytes, budget),
    }
}

/// Entries of a container that does not last.
fn owned<'a>(entries: Vec<Entry<'_>>) -> Vec<Entry<'a>> {
    entries.into_iter().map(Entry::into_owned).collect()
}
