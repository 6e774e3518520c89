//! A kernel's arguments as they lie in its segment: those of the image ABI, then the hidden ones
//! that the compiler's metadata lists. What a kernel does not use is not listed, and the segment may
//! end before it.

use loader_core::device::{Grid, Kernel, Mailbox, StartForm};

use crate::image::{Argument, KernelInfo};

/// What hidden arguments are filled from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub(crate) grid: Grid,
    /// Address of the queue.
    pub(crate) queue: u64,
}

/// How many dimensions of the grid are used.
pub(crate) fn dimensions(grid: Grid) -> u16 {
    let wide = |axis: usize| grid.blocks[axis] > 1 || grid.threads[axis] > 1;
    if wide(2) {
        3
    } else if wide(1) {
        2
    } else {
        1
    }
}

/// The segment's bytes for a kernel of the image ABI.
///
/// # Errors
/// When the kernel takes other arguments than the image ABI says.
pub(crate) fn fill(info: &KernelInfo, kernel: &Kernel, launch: Launch) -> Result<Vec<u8>, String> {
    let mut segment = fill_hidden(info, launch);
    let own: Vec<_> = own(info).collect();
    let values = explicit(kernel);
    // Older images' `_end` takes a status; it gets 0.
    let tolerated = matches!(kernel, Kernel::End) && own.len() <= 1;
    if own.len() != values.len() && !tolerated {
        return Err(format!(
            "has a kernel {} of {} arguments where {} are needed",
            info.name,
            own.len(),
            values.len()
        ));
    }
    for (argument, (value, size)) in own.iter().zip(values) {
        if argument.size != size {
            return Err(format!(
                "has a kernel {} with an argument of {} bytes at {} where {size} are needed",
                info.name, argument.size, argument.offset
            ));
        }
        put(&mut segment, argument, value);
    }
    Ok(segment)
}

/// The segment's bytes for a kernel that has no arguments of its own.
pub(crate) fn fill_hidden(info: &KernelInfo, launch: Launch) -> Vec<u8> {
    let mut segment = vec![0; info.kernarg as usize];
    for argument in info.arguments.iter().filter(|a| is_hidden(a)) {
        put(&mut segment, argument, hidden(&argument.kind, launch));
    }
    segment
}

/// What a `_start` with these arguments takes.
pub(crate) fn start_form(info: &KernelInfo) -> StartForm {
    match own(info).count() {
        6 => StartForm::Mailbox { envp: false },
        7 => StartForm::Mailbox { envp: true },
        _ => StartForm::Plain,
    }
}

/// The kernel's own arguments.
pub(crate) fn own(info: &KernelInfo) -> impl Iterator<Item = &Argument> {
    info.arguments.iter().filter(|a| !is_hidden(a))
}

fn is_hidden(argument: &Argument) -> bool {
    argument.kind.starts_with("hidden_")
}

/// Values and sizes.
fn explicit(kernel: &Kernel) -> Vec<(u64, u32)> {
    match *kernel {
        Kernel::Begin { argc, argv, envp } => {
            vec![(u64::from(argc as u32), 4), (argv, 8), (envp, 8)]
        }
        Kernel::Start {
            argc,
            argv,
            envp,
            ret,
        } => vec![(u64::from(argc as u32), 4), (argv, 8), (envp, 8), (ret, 8)],
        Kernel::StartOver {
            argc,
            argv,
            envp,
            ret,
            mailbox:
                Mailbox {
                    inbox,
                    outbox,
                    buffer,
                },
        } => [(u64::from(argc as u32), 4), (argv, 8)]
            .into_iter()
            .chain(envp.map(|envp| (envp, 8)))
            .chain([ret, inbox, outbox, buffer].map(|address| (address, 8)))
            .collect(),
        Kernel::End => Vec::new(),
    }
}

/// The value of a hidden argument. Zero is right for what only a host runtime that is not here
/// would answer (printf's buffer, host calls, a heap, queues of the device's own), for offsets into
/// the grid, for what is left of a grid of whole blocks, and for kinds that are not known.
fn hidden(kind: &str, Launch { grid, queue }: Launch) -> u64 {
    let axis = |of: [u32; 3]| {
        let number = match kind.as_bytes().last() {
            Some(b'x') => of[0],
            Some(b'y') => of[1],
            _ => of[2],
        };
        u64::from(number)
    };
    match kind {
        "hidden_block_count_x" | "hidden_block_count_y" | "hidden_block_count_z" => {
            axis(grid.blocks)
        }
        "hidden_group_size_x" | "hidden_group_size_y" | "hidden_group_size_z" => axis(grid.threads),
        "hidden_grid_dims" => dimensions(grid).into(),
        "hidden_queue_ptr" => queue,
        _ => 0,
    }
}

/// Writes the low bytes of `value`, as many as the argument has, unless they do not lie within the
/// segment.
fn put(segment: &mut [u8], argument: &Argument, value: u64) {
    let start = argument.offset as usize;
    let size = argument.size.min(8) as usize;
    if let Some(place) = segment.get_mut(start..start + size) {
        place.copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(arguments: &[(u32, u32, &str)], kernarg: u32) -> KernelInfo {
        let argument = |&(offset, size, kind): &(u32, u32, &str)| Argument {
            offset,
            size,
            kind: kind.to_owned(),
        };
        KernelInfo {
            name: "_start".to_owned(),
            arguments: arguments.iter().map(argument).collect(),
            kernarg,
            ..KernelInfo::default()
        }
    }

    const OWN: [(u32, u32, &str); 4] = [
        (0, 4, "by_value"),
        (8, 8, "global_buffer"),
        (16, 8, "global_buffer"),
        (24, 8, "global_buffer"),
    ];
    const START: Kernel = Kernel::Start {
        argc: -2,
        argv: 0x11,
        envp: 0x22,
        ret: 0x33,
    };
    const LAUNCH: Launch = Launch {
        grid: Grid {
            blocks: [0x0102_0304, 5, 1],
            threads: [64, 2, 1],
        },
        queue: 0xABCD,
    };

    #[test]
    fn hidden_arguments_are_filled_by_kind() {
        let hidden = [
            (32, 4, "hidden_block_count_x"),
            (36, 4, "hidden_block_count_y"),
            (44, 2, "hidden_group_size_x"),
            (46, 2, "hidden_group_size_y"),
            (50, 2, "hidden_remainder_x"),
            (96, 2, "hidden_grid_dims"),
            (112, 8, "hidden_hostcall_buffer"),
            (232, 8, "hidden_queue_ptr"),
        ];
        let all = [&OWN[..], &hidden].concat();
        let segment = fill(&info(&all, 288), &START, LAUNCH).unwrap();
        let at = |offset: usize, size: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&segment[offset..offset + size]);
            u64::from_le_bytes(bytes)
        };
        assert_eq!(segment.len(), 288);
        assert_eq!(at(0, 8), 0xFFFF_FFFE, "no more than the four bytes of argc");
        assert_eq!([at(8, 8), at(16, 8), at(24, 8)], [0x11, 0x22, 0x33]);
        assert_eq!([at(32, 4), at(36, 4)], [0x0102_0304, 5]);
        assert_eq!([at(44, 2), at(46, 2), at(50, 2)], [64, 2, 0]);
        assert_eq!([at(96, 2), at(112, 8), at(232, 8)], [2, 0, 0xABCD]);
    }

    #[test]
    fn nothing_is_written_behind_the_segment() {
        let all = [
            &OWN[..],
            &[(32, 4, "hidden_block_count_x"), (4, 900, "hidden_none")],
        ]
        .concat();
        let segment = fill(&info(&all, 32), &START, LAUNCH).unwrap();
        assert_eq!(segment.len(), 32);
        assert!(
            fill(&info(&[], 0), &Kernel::End, LAUNCH)
                .unwrap()
                .is_empty()
        );
        let status = info(&[(0, 4, "by_value")], 4);
        assert_eq!(fill(&status, &Kernel::End, LAUNCH).unwrap(), [0; 4]);
    }

    #[test]
    fn a_mailbox_is_passed_behind_the_value() {
        for (own, envp) in [(6, None), (7, Some(0x22))] {
            let pointer = |n| (8 * n, 8, "global_buffer");
            let all: Vec<_> = std::iter::once(OWN[0])
                .chain((1..own).map(pointer))
                .collect();
            let info = info(&all, 8 * own);
            let form = StartForm::Mailbox {
                envp: envp.is_some(),
            };
            assert_eq!(start_form(&info), form);
            let kernel = Kernel::StartOver {
                argc: 1,
                argv: 0x11,
                envp,
                ret: 0x33,
                mailbox: Mailbox {
                    inbox: 0x44,
                    outbox: 0x55,
                    buffer: 0x66,
                },
            };
            let segment = fill(&info, &kernel, LAUNCH).unwrap();
            let words: Vec<_> = segment.chunks(8).map(|word| word[0]).collect();
            let expected = [1, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66];
            let expected: Vec<_> = expected
                .into_iter()
                .filter(|&n| n != 0x22 || envp.is_some())
                .collect();
            assert_eq!(words, expected);
            assert!(fill(&info, &START, LAUNCH).is_err());
        }
        assert_eq!(start_form(&info(&OWN, 32)), StartForm::Plain);
    }

    #[test]
    fn a_plain_kernel_gets_what_is_hidden() {
        let hidden = [(0, 4, "hidden_block_count_x"), (64, 2, "hidden_grid_dims")];
        let info = info(&hidden, 256);
        assert_eq!(own(&info).count(), 0);
        let segment = fill_hidden(&info, LAUNCH);
        assert_eq!((segment.len(), segment[0], segment[64]), (256, 4, 2));
    }

    #[test]
    fn other_arguments_are_refused() {
        let said = fill(&info(&OWN[..3], 24), &START, LAUNCH).unwrap_err();
        assert!(said.contains("_start of 3 arguments where 4"), "{said}");
        let mut wide = OWN;
        wide[0].1 = 8;
        let said = fill(&info(&wide, 32), &START, LAUNCH).unwrap_err();
        assert!(said.contains("of 8 bytes at 0 where 4"), "{said}");
    }
}
