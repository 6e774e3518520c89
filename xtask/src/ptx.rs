//! What must hold of the PTX that rustc made for us.
//!
//! For NVPTX rustc emits `core`'s read-modify-writes as a bare `atom` (relaxed, device scope, no fence)
//! whatever ordering was asked, and each `core` fence at system scope. Both are silent: the first is
//! wrong, the second costs half a round trip over PCIe. So
//!
//! - every `atom` and `red` must carry an ordering and a scope, as `rpc-bitmap`'s inline assembly writes;
//! - a fence at system scope must be marked `// gpurpc:system` on its line (PTX keeps the comments of
//!   inline assembly), one marked `// gpurpc:device` must not be at system scope;
//! - `membar` and sequentially consistent fences are refused: nothing here needs them;
//! - a mask from `activemask` goes through a shuffle of each lane from itself and is used for nothing else:
//!   ptxas takes the bare one for the same in all lanes that run together (A12 of docs/memory-model.md).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The mark of a fence that is meant at system scope.
const SYSTEM_MARK: &str = "gpurpc:system";
/// The mark of a fence that is meant at device scope.
const DEVICE_MARK: &str = "gpurpc:device";

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// An atomic without ordering, scope or both.
    BareAtomic,
    /// A system-scope fence that nobody marked as meant.
    UnmarkedSystemFence,
    /// `membar` or a sequentially consistent fence.
    SequentialFence,
    /// Marked for device scope, but at system scope.
    NotDevice,
    /// A fence marked for system scope, but narrower.
    NotSystem,
    /// Uses a mask as `activemask` gave it.
    BareMask,
}

impl Problem {
    fn advice(self) -> &'static str {
        match self {
            Self::BareAtomic => {
                "carries no explicit ordering and scope (core's read-modify-writes come out relaxed): use \
                 rpc-bitmap's scoped atomics"
            }
            Self::UnmarkedSystemFence => {
                "is a system-scope fence that is not marked as meant: use rpc-bitmap's device-scope fence, or \
                 its system-scope one (`// gpurpc:system`)"
            }
            Self::SequentialFence => {
                "is sequentially consistent, which the protocol never needs: use an acq_rel fence of rpc-bitmap"
            }
            Self::NotDevice => {
                "is marked gpurpc:device but is at system scope: write .gpu, or mark it gpurpc:system"
            }
            Self::NotSystem => {
                "is marked gpurpc:system but is not at system scope: write .sys, or mark it gpurpc:device"
            }
            Self::BareMask => {
                "uses a mask as activemask gave it, which ptxas takes for the same in all lanes that run \
                 together: shuffle it from each lane to itself first"
            }
        }
    }
}

/// One finding in a PTX text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The instruction as it stands there.
    pub(crate) instruction: String,
    /// What is wrong with it.
    pub(crate) problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: `{}` {}",
            self.line,
            self.instruction,
            self.problem.advice()
        )
    }
}

/// Checks a PTX text.
pub(crate) fn check(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_block_comment = false;
    // Of this function, the instructions and the registers that bare masks are in.
    let (mut function, mut masks) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = split_comments(line, &mut in_block_comment);
        for instruction in code.split([';', '{', '}']) {
            let instruction = bare_instruction(instruction);
            if [".func", ".visible", ".entry"]
                .iter()
                .any(|start| instruction.starts_with(start))
            {
                findings.append(&mut bare_masks(&function, &masks));
                (function, masks) = (Vec::new(), Vec::new());
            } else if let Some(register) = instruction.strip_prefix("activemask.b32") {
                masks.push(register.trim().to_owned());
            } else {
                function.push((index + 1, instruction.to_owned()));
            }
            if let Some(problem) = problem_of(instruction, &comment) {
                let instruction = instruction.to_owned();
                findings.push(Finding {
                    line: index + 1,
                    instruction,
                    problem,
                });
            }
        }
    }
    findings.append(&mut bare_masks(&function, &masks));
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// The instructions of a function that use a mask of `masks` otherwise than by giving each lane its own.
fn bare_masks(function: &[(usize, String)], masks: &[String]) -> Vec<Finding> {
    let uses = |(_, instruction): &&(usize, String)| {
        let (opcode, operands) = instruction
            .split_once(char::is_whitespace)
            .unwrap_or((instruction, ""));
        let operands: Vec<_> = operands
            .split(|c: char| c.is_whitespace() || ",[]{}+|".contains(c))
            .filter(|operand| !operand.is_empty())
            .collect();
        let used = |mask: &String| operands.contains(&mask.as_str());
        let shuffled = |mask: &String| {
            opcode == "shfl.sync.idx.b32" && operands.get(1) == Some(&mask.as_str())
        };
        masks.iter().any(|mask| used(mask) && !shuffled(mask))
    };
    let found = function.iter().filter(uses);
    found
        .map(|(line, instruction)| Finding {
            line: *line,
            instruction: instruction.clone(),
            problem: Problem::BareMask,
        })
        .collect()
}

/// Checks each file; findings go to standard error, any finding is an error.
pub(crate) fn check_files(files: &[PathBuf]) -> Result<()> {
    let mut count = 0;
    for file in files {
        count += check_file(file)?;
    }
    if count > 0 {
        bail!(
            "{count} PTX instructions break the memory rules (docs/memory-model.md); they are listed above"
        );
    }
    Ok(())
}

fn check_file(file: &Path) -> Result<usize> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    if !text
        .lines()
        .any(|line| line.trim_start().starts_with(".version"))
    {
        bail!("{} is not PTX (no .version line)", file.display());
    }
    if !text.contains(".entry") {
        bail!(
            "{} has no kernel: its package must be a cdylib with `gpu-kernel` functions",
            file.display()
        );
    }
    let findings = check(&text);
    for finding in &findings {
        eprintln!("{}:{finding}", file.display());
    }
    Ok(findings.len())
}

/// Takes a line apart into code, with quoted text blanked, and comments.
fn split_comments(line: &str, in_block: &mut bool) -> (String, String) {
    let (mut code, mut comment) = (String::new(), String::new());
    let mut in_quotes = false;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let mut taken = first.len_utf8();
        if *in_block {
            if rest.starts_with("*/") {
                (*in_block, taken) = (false, 2);
            } else {
                comment.push(first);
            }
        } else if in_quotes {
            in_quotes = first != '"';
        } else if let Some(text) = rest.strip_prefix("//") {
            comment.push_str(text);
            break;
        } else if rest.starts_with("/*") {
            (*in_block, taken) = (true, 2);
        } else if first == '"' {
            in_quotes = true;
        } else {
            code.push(first);
        }
        rest = &rest[taken..];
    }
    (code, comment)
}

/// `instruction` without labels and guard predicate.
fn bare_instruction(instruction: &str) -> &str {
    let mut rest = instruction.trim();
    while let Some((label, after)) = rest.split_once(':') {
        if label.is_empty()
            || label.contains(|c: char| c.is_whitespace() || ",[".contains(c))
            || after.starts_with(':')
        {
            break; // `::` belongs to a modifier (`.shared::cta`)
        }
        rest = after.trim_start();
    }
    match rest.strip_prefix('@') {
        Some(guarded) => guarded
            .split_once(char::is_whitespace)
            .map_or("", |(_, after)| after.trim_start()),
        None => rest,
    }
}

fn problem_of(instruction: &str, comment: &str) -> Option<Problem> {
    let opcode = instruction.split_whitespace().next()?;
    let mut parts = opcode.split('.');
    let mnemonic = parts.next()?;
    let modifiers: Vec<&str> = parts.collect();
    let has = |any: &[&str]| modifiers.iter().any(|modifier| any.contains(modifier));
    let is_system = has(&["sys"]);

    let problem = match mnemonic {
        "atom" | "red" => {
            let ordered = has(&["relaxed", "acquire", "release", "acq_rel"]);
            let scoped = has(&["cta", "cluster", "gpu", "sys"]);
            (!ordered || !scoped).then_some(Problem::BareAtomic)
        }
        "membar" => Some(Problem::SequentialFence),
        "fence" if has(&["sc", "seq_cst"]) => Some(Problem::SequentialFence),
        "fence" if is_system && !comment.contains(SYSTEM_MARK) => {
            let marked_device = comment.contains(DEVICE_MARK);
            Some(if marked_device {
                Problem::NotDevice
            } else {
                Problem::UnmarkedSystemFence
            })
        }
        "fence" if !is_system && comment.contains(SYSTEM_MARK) => Some(Problem::NotSystem),
        _ => None,
    };
    problem.or_else(|| (is_system && comment.contains(DEVICE_MARK)).then_some(Problem::NotDevice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<(usize, Problem)> {
        check(text)
            .into_iter()
            .map(|finding| (finding.line, finding.problem))
            .collect()
    }

    #[test]
    fn good_code_passes() {
        let text = "
.version 8.0
.file 1 \"src/atom.add;red.add.rs\"
// atom.add.u32 in a comment, fence.sc.sys too
/* membar.sys;
   atom.or.b32 */
$L__BB0_1:
	atom.relaxed.gpu.global.or.b32 %r1, [%rd1], 1;
	@%p1 atom.acquire.gpu.or.b32 %r1, [%rd1], 1;
$L2:	red.release.sys.add.u32 [%rd1], 1;
	{ atom.acq_rel.sys.cas.b32 %r1, [%rd1], 0, 1; }
	atom.relaxed.cta.shared::cta.add.u32 %r1, [%rd1], 1;
	redux.sync.add.s32 %r1, %r2, -1;
	// begin inline asm
	fence.acq_rel.sys; // gpurpc:system
	fence.acq_rel.gpu; // gpurpc:device
	fence.acq_rel.gpu;
	fence.proxy.alias;
	// end inline asm
	st.release.sys.u32 [%rd1], %r1;
";
        assert_eq!(problems(text), []);
    }

    #[test]
    fn bare_atomics_are_found() {
        for bad in [
            "atom.global.or.b32 %r1, [%rd1], 1;",
            "atom.add.u32 %r1, [%rd1], 1;",
            "@!%p3 atom.relaxed.add.u32 %r1, [%rd1], 1;",
            "$L1: @%p3 red.gpu.add.u32 [%rd1], 1;",
            "red.global.add.u32 [%rd1], 1; // gpurpc:device",
            "{ .reg .b32 t; atom.cas.b32 t, [%rd1], 0, 1; }",
            "atom.shared::cta.add.u32 %r1, [%rd1], 1;",
            "mov.u32 %r1, %r2; atom.exch.b32 %r1, [%rd1], 1;",
            "/* why */ atom.exch.b32 %r1, [%rd1], 1;",
        ] {
            assert_eq!(problems(bad), [(1, Problem::BareAtomic)], "{bad}");
        }
    }

    #[test]
    fn fences_are_found() {
        let text = "
fence.acq_rel.sys;
fence.acq_rel.sys; // gpurpc:device
fence.acq_rel.gpu; // gpurpc:system
membar.sys;
membar.gl;
fence.sc.gpu;
fence.sc.sys; // gpurpc:system
@%p1 fence.sys;
st.release.sys.u32 [%rd1], %r1; // gpurpc:device
";
        let expected = [
            (2, Problem::UnmarkedSystemFence),
            (3, Problem::NotDevice),
            (4, Problem::NotSystem),
            (5, Problem::SequentialFence),
            (6, Problem::SequentialFence),
            (7, Problem::SequentialFence),
            (8, Problem::SequentialFence),
            (9, Problem::UnmarkedSystemFence),
            (10, Problem::NotDevice),
        ];
        assert_eq!(problems(text), expected);
    }

    #[test]
    fn bare_masks_are_found() {
        let text = "\
.func a()
{
    activemask.b32 %r1;
    shfl.sync.idx.b32 %r2, %r1, %r9, 31, %r1;
    bar.warp.sync %r2;
}
.visible .entry b()
{
    bar.warp.sync %r1;
    vote.sync.ballot.b32 %r2, %p1, %r12;
    activemask.b32 %r12;
    cvt.u64.u32 %rd1, %r12;
}
";
        assert_eq!(
            problems(text),
            [(10, Problem::BareMask), (12, Problem::BareMask)]
        );
    }

    #[test]
    fn a_finding_says_where_what_and_what_to_do() {
        let finding = &check("\n\tatom.global.or.b32 %r1, [%rd1], 1;\n")[0];
        let text = finding.to_string();
        assert!(
            text.starts_with("2: `atom.global.or.b32 %r1, [%rd1], 1` carries no"),
            "{text}"
        );
        assert!(text.contains("rpc-bitmap"), "{text}");
    }

    #[test]
    fn a_planted_file_fails_and_others_are_refused() {
        let file = std::env::temp_dir().join(format!("xtask-ptx-{}.ptx", std::process::id()));
        let check = |text: &str| {
            fs::write(&file, text).expect("written");
            check_files(std::slice::from_ref(&file)).map_err(|error| error.to_string())
        };
        assert_eq!(
            check(".version 8.0\n.visible .entry k() { ret; }\n"),
            Ok(())
        );
        let error = check(".version 8.0\n.visible .entry k() { membar.sys; ret; }\n");
        assert!(
            error
                .expect_err("planted")
                .starts_with("1 PTX instructions")
        );
        assert!(check("hello").expect_err("text").contains("is not PTX"));
        assert!(
            check(".version 8.0\n")
                .expect_err("empty")
                .contains("has no kernel")
        );
        fs::remove_file(&file).expect("removed");
    }
}
