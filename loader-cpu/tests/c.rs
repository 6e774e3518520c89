//! The C programs of `examples/c` on the CPU device, over the three layouts of the C header.

use std::process::Command;

mod c_programs;

const LOADER: c_programs::Loader = c_programs::Loader {
    command: || Command::new(env!("CARGO_BIN_EXE_loader-cpu")),
    images: ("x86_64", "so"),
    threads: 7,
    lanes: 1,
};

#[test]
fn hello_greets_over_every_layout() {
    for layout in ["line", "llvm", "llvm22"] {
        LOADER.greets(layout);
    }
}

#[test]
fn every_opcode_over_line() {
    LOADER.passes("line");
}

#[test]
fn every_opcode_over_llvm() {
    LOADER.passes("llvm");
}

#[test]
fn every_opcode_over_llvm_22() {
    LOADER.passes("llvm22");
}

/// `GPURPC_UPDATE_DOCS=1 cargo test -p loader-cpu --test c docs` writes it.
#[test]
fn the_docs_list_every_test() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/llvm.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("<!-- tests -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of tests -->").unwrap();
    let table = c_programs::table();
    let expected = format!("{before}<!-- tests -->\n\n{table}\n<!-- end of tests -->{after}");
    if std::env::var_os("GPURPC_UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
}
