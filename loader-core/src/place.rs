//! A device for an image, and the image out of what holds several.

use std::borrow::Cow;

use crate::cli::Options;
use crate::device::{Device, DeviceError};
use crate::image::container::{Container, ContainerError};
use crate::image::{self, ImageError, ImageKind};
use crate::program::{Backend, DeviceOptions};
use crate::run::RunError;

/// The order in which devices are looked for that may run what a container holds: who packs code for
/// a GPU beside code for the host wants the GPU if there is one.
const ORDER: [ImageKind; 4] = [
    ImageKind::Cubin,
    ImageKind::Ptx,
    ImageKind::AmdGpu,
    ImageKind::X86_64,
];

/// A device, and the image to load into it.
type Placed<'f> = (Box<dyn Device>, Cow<'f, [u8]>);

/// Opens a device of `backends` that runs `file`; gives it with the image, which is `file` or an entry
/// of it. `path` is what sentences call the file.
pub(crate) fn place<'f>(
    backends: &[&dyn Backend],
    path: &str,
    file: &'f [u8],
    options: &Options,
) -> Result<Placed<'f>, RunError> {
    let options = DeviceOptions::from(options);
    let bad = |error: ImageError| RunError::Image {
        path: path.to_owned(),
        error,
    };
    if let Some(container) = Container::parse(file).map_err(|error| bad(error.into()))? {
        return choose(backends, path, &container, &options);
    }
    let kind = image::recognise(file).map_err(bad)?;
    let backend = (backends.iter().find(|backend| backend.accepts(kind))).ok_or_else(|| {
        RunError::NoBackend {
            path: path.to_owned(),
            kind,
        }
    })?;
    let device = backend.open(kind, &options)?;
    Ok((device, Cow::Borrowed(file)))
}

/// The first device that runs an entry, which with it.
fn choose<'f>(
    backends: &[&dyn Backend],
    path: &str,
    container: &Container<'_>,
    options: &DeviceOptions,
) -> Result<Placed<'f>, RunError> {
    let mut tried = Vec::new();
    let mut titles = Vec::new();
    let mut absent = Vec::new();
    for kind in ORDER.into_iter().filter(|&kind| container.holds(kind)) {
        let Some(backend) = backends.iter().position(|backend| backend.accepts(kind)) else {
            continue;
        };
        if tried.contains(&backend) {
            continue;
        }
        tried.push(backend);
        let device = match backends[backend].open(kind, options) {
            Ok(device) => device,
            Err(DeviceError::Unavailable(sentence)) => {
                absent.push(sentence);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let title = device.title();
        match container.choose(&title, |kind, architecture| device.fits(kind, architecture)) {
            Ok(image) => return Ok((device, Cow::Owned(image))),
            Err(ContainerError::NoneFits { .. }) => titles.push(title),
            Err(error) => {
                return Err(RunError::Image {
                    path: path.to_owned(),
                    error: error.into(),
                });
            }
        }
    }
    let (sort, inside) = (container.sort(), container.inside());
    let error = if titles.is_empty() && !absent.is_empty() {
        let reasons = absent.join("; ");
        ContainerError::NoDevice {
            sort,
            inside,
            reasons,
        }
    } else {
        let device = if titles.is_empty() {
            "this program".to_owned()
        } else {
            titles.join(" and ")
        };
        ContainerError::NoneFits {
            sort,
            inside,
            device,
        }
    };
    Err(RunError::Image {
        path: path.to_owned(),
        error: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ffi::OsString;

    use super::*;
    use crate::cli::{Cli, parse};

    const OFFLOAD: &[u8] = include_bytes!("../tests/containers/offload.v1");

    thread_local! {
        static OPENED: RefCell<Vec<ImageKind>> = const { RefCell::new(Vec::new()) };
    }

    /// Devices for images of this kind, of which there are none.
    struct Absent(ImageKind);

    impl Backend for Absent {
        fn accepts(&self, kind: ImageKind) -> bool {
            kind == self.0
        }

        fn open(&self, kind: ImageKind, _: &DeviceOptions) -> Result<Box<dyn Device>, DeviceError> {
            OPENED.with_borrow_mut(|opened| opened.push(kind));
            let name = kind.name();
            Err(DeviceError::Unavailable(format!("nothing runs {name}")))
        }
    }

    fn place_on(backends: &[&dyn Backend], file: &[u8]) -> String {
        let cli: Cli = parse("test", [OsString::from("image")]).unwrap();
        match place(backends, "file", file, &cli.options) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_device_is_tried_the_cpu_last() {
        let backends = [ImageKind::X86_64, ImageKind::AmdGpu, ImageKind::Ptx].map(Absent);
        let [cpu, amd, nvidia] = &backends;
        let said = place_on(&[cpu, amd, nvidia], OFFLOAD);
        assert!(
            said.starts_with("file is an offload binary that holds"),
            "{said}"
        );
        let reasons = "no device is there for any of that: nothing runs PTX text; nothing runs an \
                       amdgcn code object; nothing runs an x86-64 shared object";
        assert!(said.ends_with(reasons), "{said}");
        assert_eq!(
            OPENED.take(),
            [ImageKind::Ptx, ImageKind::AmdGpu, ImageKind::X86_64]
        );
        let said = place_on(&[&Absent(ImageKind::Cubin)], OFFLOAD);
        assert!(said.ends_with("; this program runs none of that"), "{said}");
        assert!(OPENED.take().is_empty());
    }

    #[test]
    fn other_files_go_where_their_kind_does() {
        let backend = Absent(ImageKind::Ptx);
        let said = place_on(&[&backend], b".version 8.0\n");
        assert_eq!(said, "nothing runs PTX text");
        let said = place_on(&[&Absent(ImageKind::Cubin)], b".version 8.0\n");
        assert_eq!(
            said,
            "file is PTX text, which this program does not run: loader-nv does, and gpurpc-top runs any \
             image"
        );
        assert!(place_on(&[], b"hello").starts_with("file is text without"));
    }
}
