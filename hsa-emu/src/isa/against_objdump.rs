//! Decoding compared with LLVM's disassembler: length, mnemonic, operands in canonical form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Encoding;
use super::decode::decode;
use super::text::text;
use crate::testing::{images, llvm, skipped};

/// An instruction as the disassembler shows it.
struct Line {
    text: String,
    address: String,
    words: Vec<u32>,
}

/// Reads one line: text, then the address and the words as a comment.
fn parse(line: &str) -> Option<Line> {
    let (text, comment) = line.strip_prefix('\t')?.split_once("//")?;
    let (address, words) = comment.trim().split_once(':')?;
    let words = words
        .split_whitespace()
        .map_while(|word| u32::from_str_radix(word, 16).ok())
        .collect();
    Some(Line {
        text: text.trim().into(),
        address: address.into(),
        words,
    })
}

fn disassemble(image: &Path) -> Option<Vec<Line>> {
    let output = Command::new(llvm("llvm-objdump")?)
        .args(["-d", "--mcpu=gfx1100"])
        .arg(image)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().filter_map(parse).collect())
}

/// A constant in one spelling, anything else as it is.
fn constant(operand: &str) -> String {
    let inner = operand
        .strip_prefix("lit(")
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(operand);
    let number = match inner.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as u32 as i32),
        None => inner.parse::<i64>().ok().map(|n| n as i32),
    };
    match (number, inner.parse::<f64>()) {
        (Some(number), _) => number.to_string(),
        (None, Ok(float)) => format!("float {float:.4}"),
        _ => inner.to_owned(),
    }
}

/// An instruction in canonical form: its name, operands, and the modifiers that are compared.
fn canonical(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for half in text.split("::") {
        let (name, rest) = half.trim().split_once(' ').unwrap_or((half.trim(), ""));
        let name = ["_e32", "_e64", "_dpp", "_e64_dpp"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        parts.push(name.to_owned());
        // Selections are seen in the operands, as halves.
        let rest = rest.split(" op_sel").next().unwrap_or_default();
        for operand in rest
            .split(',')
            .map(str::trim)
            .filter(|operand| !operand.is_empty())
        {
            let mut words = operand.split_whitespace();
            parts.extend(words.next().map(constant));
            parts.extend(
                words
                    .filter(|word| word.starts_with("offset") || *word == "clamp")
                    .map(|word| {
                        let (name, value) = word.split_once(':').unwrap_or((word, ""));
                        format!("{name}:{}", constant(value))
                    }),
            );
        }
    }
    // An offset of zero is left out by some, as is the offset of a pair.
    parts.retain(|part| !(part.starts_with("offset") && part.ends_with(":0")));
    parts
}

/// Names whose operands are numbers that the disassembler writes as words.
fn spelled_out(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "s_waitcnt",
        "s_delay_alu",
        "s_sendmsg",
        "s_getreg",
        "s_setreg",
        "s_denorm_mode",
        "s_round_mode",
        "ds_swizzle",
    ];
    NAMES.iter().any(|start| name.starts_with(start))
}

/// What differs, if anything does.
fn compare(line: &Line) -> Option<String> {
    let Some(inst) = decode(&line.words, 32) else {
        let name = line.text.split_whitespace().next().unwrap_or_default();
        // Zeros between functions: both say that they are none.
        return (name != "v_illegal").then(|| format!("unknown: {name}"));
    };
    let ours = text(&inst, 32);
    let size = usize::from(inst.size) / 4;
    let (mut mine, mut theirs) = (canonical(&ours), canonical(&line.text));
    if theirs.first().is_some_and(|name| spelled_out(name)) {
        mine.truncate(1);
        theirs.truncate(1);
    }
    // A branch names its target behind the number.
    if inst.encoding == Encoding::Sopp {
        theirs.truncate(2);
        if theirs.len() == 2 && theirs[1].parse::<i32>().is_ok() {
            let number = theirs[1].parse::<i32>().unwrap_or_default() as u16;
            theirs[1] = number.to_string();
        }
    }
    if size == line.words.len() && mine == theirs {
        return None;
    }
    Some(format!("{}: {} is {ours} here", line.address, line.text))
}

/// A case and their number by name.
type Differences = BTreeMap<String, (String, usize)>;

/// Compares a whole file; gives how many instructions it has, and for each name that differs a case
/// and their number.
fn check(image: &Path) -> Option<(usize, Differences)> {
    let lines = disassemble(image)?;
    let mut differences = BTreeMap::new();
    for line in &lines {
        if let Some(difference) = compare(line) {
            let name = line.text.split(' ').next().unwrap_or_default().to_owned();
            differences.entry(name).or_insert((difference, 0)).1 += 1;
        }
    }
    Some((lines.len(), differences))
}

fn check_all(files: &[PathBuf]) {
    let mut all = 0;
    for file in files {
        let Some((count, differences)) = check(file) else {
            return skipped("llvm-objdump");
        };
        all += count;
        let shown: Vec<_> = differences.values().collect();
        assert!(shown.is_empty(), "{}: {shown:#?}", file.display());
    }
    println!("{all} instructions of {} files agree", files.len());
}

#[test]
fn images_decode_as_llvm_says() {
    match images() {
        Some(images) => check_all(&images),
        None => skipped("images for amdgcn"),
    }
}

#[test]
fn programs_of_clang_decode_as_llvm_says() {
    let mut built = Vec::new();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        match crate::testing::programs(level) {
            Some(programs) => built.extend(programs),
            None => return skipped("clang"),
        }
    }
    check_all(&built);
}
