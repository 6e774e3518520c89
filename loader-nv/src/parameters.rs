//! The kernels' names and parameters.

use loader_core::device::{Kernel, Mailbox, StartForm};
use rpc_types::image::GPU_KERNELS;

/// The kernel's name in an image.
pub(crate) fn name(kernel: &Kernel) -> &'static str {
    match kernel {
        Kernel::Begin { .. } => GPU_KERNELS.begin,
        Kernel::Start { .. } | Kernel::StartOver { .. } => GPU_KERNELS.start,
        Kernel::End => GPU_KERNELS.end,
    }
}

/// The kernel's parameters as they lie in memory, of exactly the size that the driver expects.
pub(crate) fn parameters(kernel: &Kernel) -> Vec<u8> {
    let (argc, addresses) = match *kernel {
        Kernel::Begin { argc, argv, envp } => (argc, vec![argv, envp]),
        Kernel::Start {
            argc,
            argv,
            envp,
            ret,
        } => (argc, vec![argv, envp, ret]),
        Kernel::StartOver {
            argc,
            argv,
            envp,
            ret,
            mailbox,
        } => {
            let Mailbox {
                inbox,
                outbox,
                buffer,
            } = mailbox;
            let before = std::iter::once(argv).chain(envp);
            let behind = [ret, inbox, outbox, buffer];
            (argc, before.chain(behind).collect())
        }
        Kernel::End => return Vec::new(),
    };
    let mut bytes = argc.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; 4]); // the addresses are aligned to 8
    bytes.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
    bytes
}

/// What a `_start` with so many bytes of parameters takes.
pub(crate) fn start_form(parameters: Option<u32>) -> StartForm {
    match parameters {
        // `argc`, then five or six pointers.
        Some(48) => StartForm::Mailbox { envp: false },
        Some(56) => StartForm::Mailbox { envp: true },
        _ => StartForm::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_the_size_of_the_kernels() {
        let begin = parameters(&Kernel::Begin {
            argc: 3,
            argv: 0x1122,
            envp: 0x33,
        });
        assert_eq!(begin.len(), 24);
        assert_eq!(begin[..10], [3, 0, 0, 0, 0, 0, 0, 0, 0x22, 0x11]);
        let start = parameters(&Kernel::Start {
            argc: -1,
            argv: 1,
            envp: 2,
            ret: 0x0400,
        });
        assert_eq!(start.len(), 32);
        assert_eq!(start[..4], [255; 4]);
        assert_eq!(start[24..], [0, 4, 0, 0, 0, 0, 0, 0]);
        assert!(parameters(&Kernel::End).is_empty());
    }

    #[test]
    fn a_mailbox_is_passed_behind_the_value() {
        let over = |envp| {
            parameters(&Kernel::StartOver {
                argc: 1,
                argv: 2,
                envp,
                ret: 4,
                mailbox: Mailbox {
                    inbox: 5,
                    outbox: 6,
                    buffer: 7,
                },
            })
        };
        let words = |bytes: Vec<u8>| bytes.chunks(8).map(|word| word[0]).collect::<Vec<_>>();
        assert_eq!(words(over(None)), [1, 2, 4, 5, 6, 7]);
        assert_eq!(words(over(Some(3))), [1, 2, 3, 4, 5, 6, 7]);
        for (envp, takes) in [(None, false), (Some(3), true)] {
            let size = over(envp).len() as u32;
            assert_eq!(start_form(Some(size)), StartForm::Mailbox { envp: takes });
        }
        for size in [None, Some(0), Some(24), Some(32)] {
            assert_eq!(start_form(size), StartForm::Plain);
        }
    }
}
