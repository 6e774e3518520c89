//! Which layouts there are.

use super::MAX_PORTS;

/// The layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LayoutKind {
    /// One mailbox bit per port, opcodes in the packets: the smallest.
    Compact = 1,
    /// Words that carry their flag with them, reply blocks apart: the default, made for PCIe.
    Line = 2,
    /// One mailbox word per port, opcodes in headers, no status: what images made with the LLVM libc
    /// of the releases 20 to 22 expect.
    Llvm22 = 3,
    /// As [`Llvm22`](Self::Llvm22) with room for a doorbell in front: what those made since April 2026
    /// expect.
    Llvm = 4,
    /// One port, whose three addresses are passed to the kernel, and the opcode in its packet: what
    /// images made with LLVM's first patch for RPC expect, in March 2023. One lane at a time.
    First = 5,
}

impl LayoutKind {
    /// The layout with this number in an image, or `None` if there is no such layout.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Compact),
            2 => Some(Self::Line),
            3 => Some(Self::Llvm22),
            4 => Some(Self::Llvm),
            5 => Some(Self::First),
            _ => None,
        }
    }

    /// The most ordinary ports that a client with this layout can have: LLVM's have one bit for each
    /// port, the last one included. Those of [`First`](Self::First) know of no other than the first.
    pub const fn max_ports(self) -> u32 {
        match self {
            Self::Compact | Self::Line => MAX_PORTS,
            Self::Llvm22 | Self::Llvm => crate::llvm::max_ports(self) - 1,
            Self::First => 1,
        }
    }

    /// Whether this is what LLVM's libc expects, in one of its forms.
    pub const fn is_llvm(self) -> bool {
        matches!(self, Self::Llvm22 | Self::Llvm | Self::First)
    }

    /// Payload bytes of a packet.
    pub const fn payload(self) -> usize {
        match self {
            Self::Compact => 62,
            Self::Line | Self::Llvm22 | Self::Llvm | Self::First => 64,
        }
    }

    /// The layout's name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compact => "Compact",
            Self::Line => "Line",
            Self::Llvm22 => "Llvm22",
            Self::Llvm => "Llvm",
            Self::First => "First",
        }
    }
}
