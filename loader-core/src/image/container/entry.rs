//! An entry of a container.

use std::borrow::Cow;
use std::fmt;

use object::elf;

use super::super::{EM_AMDGPU, EM_CUDA, ImageError, ImageKind, is_ptx, recognise};
use super::unpack::{Packing, unpack};
use super::{ContainerError, Sort};

/// The longest name that a sentence has.
const SHOWN: usize = 80;

/// What an entry says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Who is to load it: `hip`, `openmp`, `cuda`, `host`.
    pub(super) producer: String,
    /// `amdgcn-amd-amdhsa`.
    pub(super) triple: String,
    /// `gfx90a:xnack+`, `sm_90a`.
    pub(super) architecture: String,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Image(ImageKind),
    /// With its article, for sentences.
    Other(Cow<'static, str>),
}

/// One of the things that a container holds, with what is said of it: nothing of that is empty but
/// what the container does not say.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    names: Names,
    form: Form,
    data: Cow<'a, [u8]>,
    /// How `data` is compressed, and how many bytes it becomes.
    packed: Option<(Packing, u64)>,
}

impl<'a> Entry<'a> {
    /// An entry that stands in its container as it is.
    pub(super) fn plain(names: Names, data: &'a [u8]) -> Self {
        Self {
            names,
            form: form(data),
            data: Cow::Borrowed(data),
            packed: None,
        }
    }

    /// An entry that is compressed; its container says what it is.
    pub(super) fn packed(
        names: Names,
        kind: ImageKind,
        data: &'a [u8],
        packing: Packing,
        size: u64,
    ) -> Self {
        Self {
            names,
            form: Form::Image(kind),
            data: Cow::Borrowed(data),
            packed: Some((packing, size)),
        }
    }

    /// An entry that is no image; `what` has its article.
    pub(super) fn other(names: Names, what: impl Into<Cow<'static, str>>) -> Self {
        Self {
            names,
            form: Form::Other(what.into()),
            data: Cow::Borrowed(&[]),
            packed: None,
        }
    }

    /// Who is to load it, as the container says: `hip`, `openmp`, `cuda`, `host`.
    pub fn producer(&self) -> &str {
        &self.names.producer
    }

    /// The triple of its target: `amdgcn-amd-amdhsa`.
    pub fn triple(&self) -> &str {
        &self.names.triple
    }

    /// Which processors it is for: `gfx90a:xnack+`, `sm_90a`.
    pub fn architecture(&self) -> &str {
        &self.names.architecture
    }

    /// The kind of image that it is, if it is one.
    pub const fn image(&self) -> Option<ImageKind> {
        match self.form {
            Form::Image(kind) => Some(kind),
            Form::Other(_) => None,
        }
    }

    /// Its bytes, in memory of their own: in the container they may stand at odd addresses, where ELF
    /// files cannot be read.
    ///
    /// # Errors
    /// When they are compressed and cannot be unpacked; `sort` is that of the container.
    pub fn unpack(&self, sort: Sort) -> Result<Vec<u8>, ContainerError> {
        match self.packed {
            None => Ok(self.data.to_vec()),
            Some((packing, size)) => unpack(sort, packing, &self.data, size),
        }
    }

    /// The sort of the container that it is, if it is one.
    pub(super) fn container(&self) -> Option<Sort> {
        match self.packed {
            None => Sort::of(&self.data),
            Some(_) => None,
        }
    }

    pub(super) fn into_parts(self) -> (Names, Cow<'a, [u8]>) {
        (self.names, self.data)
    }

    pub(super) fn into_owned<'b>(self) -> Entry<'b> {
        Entry {
            names: self.names,
            form: self.form,
            data: Cow::Owned(self.data.into_owned()),
            packed: self.packed,
        }
    }

    /// The same within an entry of these names: what it does not say itself, that one says.
    pub(super) fn within(mut self, outer: &Names) -> Self {
        let fill = |own: &mut String, other: &str| {
            if own.is_empty() {
                other.clone_into(own);
            }
        };
        fill(&mut self.names.producer, &outer.producer);
        fill(&mut self.names.triple, &outer.triple);
        fill(&mut self.names.architecture, &outer.architecture);
        self
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Image(kind) => f.write_str(kind.name())?,
            Form::Other(what) => f.write_str(what)?,
        }
        let Names {
            producer,
            triple,
            architecture,
        } = &self.names;
        let mut before = " for ";
        for name in [producer, triple, architecture] {
            if name.is_empty() {
                continue;
            }
            let short: String = name.chars().take(SHOWN).collect();
            write!(f, "{before}{short}")?;
            if short.len() < name.len() {
                f.write_str("...")?;
            }
            before = " ";
        }
        Ok(())
    }
}

/// What bytes are, by their first look. An image that is damaged still counts as one: should it be
/// the one that fits, that is to be said.
fn form(data: &[u8]) -> Form {
    let other = |what: &'static str| Form::Other(what.into());
    if data.starts_with(&elf::ELFMAG) {
        let machine = data
            .get(18..20)
            .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        return match machine {
            Some(EM_CUDA) => Form::Image(ImageKind::Cubin),
            Some(EM_AMDGPU) => Form::Image(ImageKind::AmdGpu),
            _ => match recognise(&aligned(data)) {
                Ok(kind) => Form::Image(kind),
                Err(ImageError::OtherElf(what)) => Form::Other(what.into()),
                Err(_) => other("a damaged ELF file"),
            },
        };
    }
    match data {
        [b'B', b'C', 0xC0, 0xDE, ..] | [0xDE, 0xC0, 0x17, 0x0B, ..] => other("LLVM bitcode"),
        [0x03, 0x02, 0x23, 0x07, ..] => other("SPIR-V"),
        _ if std::str::from_utf8(data).is_ok_and(is_ptx) => Form::Image(ImageKind::Ptx),
        _ => other("something unknown"),
    }
}

/// The same where ELF files can be read: a copy, should it stand at an odd address.
fn aligned(data: &[u8]) -> Cow<'_, [u8]> {
    if data.as_ptr().addr().is_multiple_of(8) {
        Cow::Borrowed(data)
    } else {
        Cow::Owned(data.to_vec())
    }
}
