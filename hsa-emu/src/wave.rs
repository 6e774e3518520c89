//! A wave: registers, program counter and private memory of up to 64 lanes that run in lock step.
//!
//! A wave is a state that [`Wave::run`] takes further by a number of instructions; between two runs it
//! may lie in a queue, move to another thread, or wait for others.

use std::sync::Arc;

use crate::code::Code;
use crate::fault::{Cause, Fault};
use crate::group::Group;
use crate::isa::operand::{self, EXEC, LITERAL, PRIVATE_APERTURE, SHARED_APERTURE, VCC};
use crate::isa::{Encoding, Inst};
use crate::memory::Space;
use crate::private::Private;
use crate::trace;

/// What an instruction does to the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The next one follows.
    Next,
    /// Others should run before the next one.
    Yield,
    /// The same, for this many times 64 cycles.
    Sleep(u32),
    /// Wait for the other waves of the workgroup.
    Barrier,
    /// The wave has ended.
    End,
    /// It cannot go on; [`Wave::cause`] says why.
    Fault,
}

/// Why a run ended.
#[derive(Debug)]
pub(crate) enum Pause {
    /// The quantum is used up, or the program waits in a loop.
    Yield,
    /// The program asked for time.
    Sleep(u32),
    /// It waits for its workgroup.
    Barrier,
    /// It has ended.
    End,
    /// It cannot go on.
    Fault(Box<Fault>),
}

/// The state of a wave.
pub(crate) struct Wave {
    /// Registers and constants: see [`operand`].
    pub(crate) regs: Box<[u32]>,
    /// The address of the next instruction.
    pub(crate) pc: u64,
    /// Lanes that exist.
    pub(crate) width: u64,
    /// 32 or 64.
    pub(crate) lanes: u16,
    /// Bits of the mode register.
    pub(crate) mode: u32,
    /// Private memory of each lane.
    pub(crate) private: Private,
    /// The workgroup it belongs to.
    pub(crate) group: Arc<Group>,
    /// Its number in the workgroup.
    pub(crate) number: u32,
    /// Where its last accesses went, as [`Space::check`] keeps it.
    pub(crate) hint: [u32; 2],
    /// Set before [`Flow::Fault`].
    pub(crate) cause: Option<Cause>,
    /// The code it runs.
    code: Option<Arc<Code>>,
    /// Instructions run.
    pub(crate) steps: u64,
}

impl Wave {
    /// A wave that starts at `pc` with all registers zero and `lanes` lanes.
    pub(crate) fn new(
        group: Arc<Group>,
        number: u32,
        lanes: u16,
        pc: u64,
        private: Private,
    ) -> Self {
        Self {
            regs: operand::register_file(lanes.into()),
            pc,
            width: if lanes == 64 { u64::MAX } else { 0xffff_ffff },
            lanes,
            mode: 0,
            private,
            group,
            number,
            hint: [0; 2],
            cause: None,
            code: None,
            steps: 0,
        }
    }

    /// The lanes that run.
    #[inline(always)]
    pub(crate) fn exec(&self) -> u64 {
        self.mask(EXEC)
    }

    /// A bit for each lane, from scalar registers.
    #[inline(always)]
    pub(crate) fn mask(&self, register: u16) -> u64 {
        let at = usize::from(register);
        (u64::from(self.regs[at]) | u64::from(self.regs[at + 1]) << 32) & self.width
    }

    /// Writes a bit for each lane to scalar registers.
    #[inline(always)]
    pub(crate) fn set_mask(&mut self, register: u16, mask: u64) {
        let at = usize::from(register);
        self.regs[at] = mask as u32;
        if self.lanes == 64 {
            self.regs[at + 1] = (mask >> 32) as u32;
        }
    }

    /// VCC.
    #[inline(always)]
    pub(crate) fn vcc(&self) -> u64 {
        self.mask(VCC)
    }

    /// Gives up at this instruction.
    #[cold]
    pub(crate) fn fail(&mut self, cause: Cause) -> Flow {
        self.cause = Some(cause);
        Flow::Fault
    }

    /// Runs at most `quantum` instructions.
    pub(crate) fn run(&mut self, space: &Space, quantum: u32) -> Pause {
        // What lay where may have changed since the last run.
        self.hint = [0; 2];
        let mut left = quantum;
        while left > 0 {
            let Some(code) = self.fetch_code() else {
                return self.fault(Cause::Fetch, None);
            };
            // Leaves the loop with the reason, or to look for other code.
            while left > 0 {
                let Some(slot) = code.slot(self.pc) else {
                    break;
                };
                let Some(inst) = code.instruction(slot, self.lanes) else {
                    return self.fault(Cause::Illegal(code.word(slot)), None);
                };
                left -= 1;
                self.steps += 1;
                if trace::ON.get() {
                    trace::instruction(self, inst);
                }
                self.pc += u64::from(inst.size);
                self.regs[usize::from(LITERAL)] = inst.literal as u32;
                self.regs[usize::from(LITERAL) + 1] = (inst.literal >> 32) as u32;
                let pause = match (inst.exec)(self, inst, space) {
                    Flow::Next => continue,
                    Flow::Yield => Pause::Yield,
                    Flow::Sleep(time) => Pause::Sleep(time),
                    Flow::Barrier => Pause::Barrier,
                    Flow::End => Pause::End,
                    Flow::Fault => {
                        self.pc -= u64::from(inst.size);
                        let cause = self.cause.take().unwrap_or(Cause::Fetch);
                        return self.fault(cause, Some(inst));
                    }
                };
                return pause;
            }
        }
        Pause::Yield
    }

    /// The code that has the program counter.
    fn fetch_code(&mut self) -> Option<Arc<Code>> {
        if let Some(code) = &self.code
            && code.slot(self.pc).is_some()
        {
            return Some(Arc::clone(code));
        }
        self.code = self.group.code(self.pc);
        self.code.clone()
    }

    /// Looks the code up anew at the next run.
    #[cfg(test)]
    pub(crate) fn forget_code(&mut self) {
        self.code = None;
    }

    #[cold]
    fn fault(&mut self, cause: Cause, inst: Option<&Inst>) -> Pause {
        let place = match &self.code {
            Some(code) => code.place(self.pc),
            None => String::new(),
        };
        Pause::Fault(Box::new(Fault {
            cause,
            pc: self.pc,
            place,
            instruction: inst.map(|inst| crate::isa::text::text(inst, self.lanes)),
            workgroup: self.group.id,
            wave: self.number,
        }))
    }

    /// Where `size` bytes at the address of `lane` lie in this process.
    #[inline(always)]
    pub(crate) fn locate(
        &mut self,
        inst: &Inst,
        space: &Space,
        lane: usize,
        size: u64,
        write: bool,
    ) -> Result<*mut u8, Cause> {
        let src = &inst.src[0];
        let word = usize::from(src.base) + lane;
        let offset = i64::from(inst.imm) as u64;
        match inst.encoding {
            Encoding::Scratch => {
                let mut address = inst.imm as u32;
                if inst.vaddr {
                    address = address.wrapping_add(self.regs[word]);
                }
                if let Some(base) = inst.base {
                    address = address.wrapping_add(self.regs[usize::from(base)]);
                }
                self.private.locate(lane, address, size)
            }
            Encoding::Ds => {
                let address = u64::from(self.regs[word]) + offset;
                self.group.local.locate(address, size)
            }
            Encoding::Global => {
                let mut address = offset.wrapping_add(self.regs[word].into());
                if let Some(base) = inst.base {
                    address = address.wrapping_add(self.pair(base));
                } else {
                    let high = self.regs[word + usize::from(src.step)];
                    address = address.wrapping_add(u64::from(high) << 32);
                }
                self.global(space, address, size, write)
            }
            _ => {
                let high = self.regs[word + usize::from(src.step)];
                let address =
                    (u64::from(self.regs[word]) | u64::from(high) << 32).wrapping_add(offset);
                match (address >> 32) as u32 {
                    SHARED_APERTURE => self.group.local.locate(address & 0xffff_ffff, size),
                    PRIVATE_APERTURE => self.private.locate(lane, address as u32, size),
                    _ => self.global(space, address, size, write),
                }
            }
        }
    }

    /// Where `size` bytes of global memory lie in this process.
    #[inline(always)]
    pub(crate) fn global(
        &mut self,
        space: &Space,
        address: u64,
        size: u64,
        write: bool,
    ) -> Result<*mut u8, Cause> {
        space
            .check(address, size, write, &mut self.hint)
            .map_err(|refusal| Cause::Memory {
                address,
                size,
                write,
                refusal,
            })
    }

    /// Two scalar registers as one number.
    #[inline(always)]
    pub(crate) fn pair(&self, register: u16) -> u64 {
        let at = usize::from(register);
        u64::from(self.regs[at]) | u64::from(self.regs[at + 1]) << 32
    }
}
