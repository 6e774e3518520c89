//! Help, README and completions agree with what the program takes.

use std::process::Command;

#[test]
fn help_is_as_written_down() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

fn top(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gpurpc-top"))
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All long options that a help lists.
fn options(help: &str) -> Vec<&str> {
    let words = help.split(|c: char| !c.is_ascii_lowercase() && c != '-');
    let mut options: Vec<_> = words
        .filter(|word| word.len() > 3 && word.starts_with("--") && !word.ends_with('-'))
        .collect();
    options.sort_unstable();
    options.dedup();
    options
}

#[test]
fn completions_know_every_option() {
    let help = top(&["--help"]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = top(&["completions", shell]);
        for option in options(&help) {
            let name = option.trim_start_matches('-');
            assert!(script.contains(name), "{shell} does not know {option}");
        }
        assert!(script.contains("attach"), "{shell}");
    }
}

#[test]
fn what_is_written_about_options_is_true() {
    let known = [top(&["--help"]), top(&["attach", "--help"])].concat();
    let known = options(&known);
    for (name, text) in [
        ("README.md", include_str!("../README.md")),
        ("docs/monitor.md", include_str!("../../docs/monitor.md")),
    ] {
        for option in options(text) {
            assert!(known.contains(&option), "{name} tells of {option}");
        }
    }
}

#[test]
fn the_guide_has_every_state_and_warning() {
    let guide = include_str!("../../docs/monitor.md");
    let palette = gpurpc_top::palette::Palette::default();
    for mark in gpurpc_top::state::ports::MARKS {
        assert!(guide.contains(mark.name()), "{mark:?}");
        assert!(guide.contains(palette.mark(mark)), "{mark:?}");
    }
    for tab in gpurpc_top::state::TABS {
        assert!(guide.contains(&format!("## {} (", tab.title())), "{tab:?}");
    }
}
