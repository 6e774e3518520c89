//! The C programs of `examples/c` under a loader: what `cargo xtask images` made of them, as a table over
//! all tests that `c-opcodes` has. Used by the tests of more than one loader.
//!
//! Images that are missing are named and left out, or fail with `GPURPC_REQUIRE_IMAGES=1`.
#![allow(dead_code, unreachable_pub, reason = "a module of test programs")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rpc_types::Opcode;

/// A loader and how it runs these images.
pub struct Loader {
    /// The program, with the options that it always has.
    pub command: fn() -> Command,
    /// The folder below `target/images/` and the images' extension.
    pub images: (&'static str, &'static str),
    /// Threads of a block, of which there are two.
    pub threads: u32,
    /// Lanes of a warp; of each other warp the tests see what they see of the first.
    pub lanes: u32,
}

/// How a test ends.
#[derive(Clone, Copy)]
enum End {
    /// By this code.
    Code(i32),
    /// By the status of the lowest lane that called `exit`.
    Exit,
    /// Over LLVM's layout, which has no word for it, by 125.
    Untold,
}

/// What a test leaves for its host to see, from each thread and round.
#[derive(Clone, Copy)]
enum Leaves {
    Nothing,
    /// A line on standard output.
    Out(fn(&Thread) -> String),
    /// A line on standard error.
    Err(fn(&Thread) -> String),
    /// A file with these contents.
    File(fn(&Thread) -> String),
    /// The loader's own reports, which are not compared.
    Reports,
}

/// A thread in a round of a test: what it works with, as `opcodes.c` has it.
struct Thread {
    test: &'static str,
    index: u32,
    round: u32,
}

impl Thread {
    fn letter(&self, i: u32) -> char {
        (b'a' + ((self.index * 7 + self.round * 5 + i * 3) % 26) as u8) as char
    }

    fn content(&self) -> String {
        let size = (self.index * 37 + self.round * 11) % 200;
        (0..size).map(|i| self.letter(i)).collect()
    }

    fn message(&self) -> String {
        format!(
            "{} {} {} {}",
            self.test,
            self.index,
            self.round,
            self.content()
        )
    }

    fn line(&self) -> String {
        self.message() + "\n"
    }

    fn more(&self) -> String {
        self.content() + "+"
    }

    /// What `printf` is to make of its two formats, once from a block that was made by hand, once as a
    /// program calls it.
    fn printed(&self) -> String {
        let (test, n) = (self.test, self.index);
        let line = if n % 2 == 1 {
            format!("{test} strings: {} abc (null)\n", self.content())
        } else {
            let (a, b, m) = (self.letter(0), self.letter(1), n + 1);
            format!("{test} numbers: {n} -{m} {n:05x} {a}{b} {n}.25 {m}000000000    7|8   |%\n")
        };
        line.repeat(2)
    }
}

use End::{Code, Exit, Untold};
use Leaves::{Err, File, Nothing, Out, Reports};

/// Every test of `c-opcodes`, in its order.
const TESTS: &[(&str, End, Leaves)] = &[
    ("noop", Code(0), Nothing),
    ("exit", Exit, Nothing),
    ("write_to_stdout", Code(0), Out(Thread::line)),
    ("write_to_stderr", Code(0), Err(Thread::line)),
    ("write_to_stream", Code(0), File(|t| t.message() + "+")),
    ("write_to_stdout_newline", Code(0), Out(Thread::line)),
    ("read_from_stream", Code(0), File(Thread::content)),
    ("read_fgets", Code(0), Nothing),
    ("open_file", Code(0), File(Thread::more)),
    ("close_file", Code(0), File(Thread::content)),
    ("malloc", Code(0), Nothing),
    ("free", Code(0), Nothing),
    ("slabs", Code(0), Nothing),
    ("host_call", Code(0), Reports),
    ("abort", Code(134), Reports),
    ("feof", Code(0), File(Thread::content)),
    ("ferror", Code(0), File(Thread::content)),
    ("clearerr", Code(0), File(Thread::content)),
    ("fseek", Code(0), File(Thread::content)),
    ("ftell", Code(0), File(|t| t.content() + "xyz")),
    ("fflush", Code(0), File(Thread::message)),
    ("ungetc", Code(0), File(Thread::content)),
    ("printf_to_stdout", Code(0), Out(Thread::printed)),
    ("printf_to_stderr", Code(0), Err(Thread::printed)),
    ("printf_to_stream", Code(0), File(Thread::printed)),
    ("printf_to_stdout_packed", Code(0), Out(Thread::printed)),
    ("printf_to_stderr_packed", Code(0), Err(Thread::printed)),
    ("printf_to_stream_packed", Code(0), File(Thread::printed)),
    ("remove", Code(0), Nothing),
    ("rename", Code(0), File(Thread::content)),
    ("system", Code(0), Reports),
    ("test_increment", Code(0), Nothing),
    ("test_interface", Code(0), Nothing),
    ("test_stream", Code(0), Nothing),
    ("hostile_messages", Code(0), Reports),
    ("hostile_sizes", Code(0), Reports),
    ("hostile_stream", Code(0), Reports),
    ("hostile_modes", Code(0), Reports),
    ("hostile_paths", Code(0), Reports),
    ("hostile_formats", Code(0), Reports),
    ("hostile_handles", Code(0), Reports),
    ("hostile_reads", Code(0), Reports),
    ("hostile_masks", Code(0), Reports),
    ("unknown", Untold, Reports),
];

/// The tests as a table for people, those of an opcode first.
pub fn table() -> String {
    let builtin = (0..30).chain(0x8000..0x8003);
    let number = |test: &str| {
        let mut all = builtin.clone().map(|n| (n, Opcode::builtin(n)));
        all.find(|(_, opcode)| opcode.name() == Some(test))
    };
    let mut rows =
        "| opcode | test of `c-opcodes` | the device checks, and |\n|---|---|---|\n".to_owned();
    for &(test, end, leaves) in TESTS {
        let opcode = number(test).map_or(String::new(), |(n, _)| {
            if n < 30 {
                n.to_string()
            } else {
                format!("{n:#x}")
            }
        });
        let end = match end {
            Code(0) => "",
            Code(_) => "the run ends with 134",
            Exit => "the run ends with the lowest lane's status",
            Untold => "over LLVM's layouts the run ends with 125",
        };
        let leaves = match leaves {
            Nothing | Reports => "",
            Out(_) => "what is on standard output",
            Err(_) => "what is on standard error",
            File(_) => "what is in its files",
        };
        let host = [end, leaves].into_iter().find(|said| !said.is_empty());
        let host = host.unwrap_or_default();
        writeln!(rows, "| {opcode} | `{test}` | {host} |").unwrap();
    }
    rows
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Loader {
    fn path(&self, name: &str) -> PathBuf {
        let target = std::env::var_os("GPURPC_IMAGES").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/images"),
            PathBuf::from,
        );
        let (folder, extension) = self.images;
        target.join(folder).join(format!("{name}.{extension}"))
    }

    /// Whether there is an image of this name, for tests of what need not be built.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The image of this name, or `None` where there is none and need not be one.
    fn image(&self, name: &str) -> Option<PathBuf> {
        let image = self.path(name);
        if image.exists() {
            return Some(image);
        }
        let missing = format!(
            "there is no {} (`cargo xtask images` builds it)",
            image.display()
        );
        assert!(
            std::env::var_os("GPURPC_REQUIRE_IMAGES").is_none_or(|value| value != "1"),
            "{missing}"
        );
        // Past the capture of the output of tests that pass.
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        let _ = writeln!(std::io::stderr(), "{test} left out: {missing}");
        None
    }

    fn run(&self, options: &[&str], image: &Path, arguments: &[&str]) -> Ran {
        let output = (self.command)()
            .args(["--timeout", "300", "--blocks", "2", "--threads"])
            .arg(self.threads.to_string())
            .args(options)
            .arg(image)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Ran {
            // As a shell has it: by a signal, 128 and its number.
            code: (output.status.code()).or_else(|| Some(128 + output.status.signal()?)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// `c-hello` over `layout`: a line from each thread, and its arguments.
    pub fn greets(&self, layout: &str) {
        let Some(image) = self.image(&format!("c-hello-{layout}")) else {
            return;
        };
        let ran = self.run(&[], &image, &["a", "--b"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{layout}");
        let mut lines: Vec<_> = ran.stdout.lines().map(str::to_owned).collect();
        let greeting = |block, thread| format!("hello from block {block} thread {thread}");
        let mut expected: Vec<_> = (0..2)
            .flat_map(|block| (0..self.threads).map(move |thread| greeting(block, thread)))
            .chain(["arg 1: a".to_owned(), "arg 2: --b".to_owned()])
            .collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected, "{layout}");
    }

    /// `c-constructors`: all have run before the first thread, and the destructor once.
    pub fn constructs(&self) {
        let Some(image) = self.image("c-constructors-llvm") else {
            return;
        };
        let ran = self.run(&[], &image, &[]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        let mut expected = vec!["constructed"; 2 * self.threads as usize];
        expected.push("destructed");
        assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), expected);
    }

    /// All tests of `c-opcodes` over `layout`.
    pub fn passes(&self, layout: &str) {
        let Some(image) = self.image(&format!("c-opcodes-{layout}")) else {
            return;
        };
        let named = self.run(&[], &image, &["list"]).stdout;
        let names: Vec<_> = TESTS.iter().map(|test| test.0).collect();
        assert_eq!(named.lines().collect::<Vec<_>>(), names);
        let mut failures = Vec::new();
        for test in TESTS {
            failures.extend(self.fails(layout, &image, &[], *test));
        }
        let system = ("system", Code(0), File(|_| "ran\n".to_owned()));
        failures.extend(self.fails(layout, &image, &["--allow", "system"], system));
        assert!(failures.is_empty(), "{layout}:\n{}", failures.join("\n"));
    }

    /// Runs a test: what is wrong, if anything is.
    fn fails(
        &self,
        layout: &str,
        image: &Path,
        options: &[&str],
        (test, end, leaves): (&'static str, End, Leaves),
    ) -> Option<String> {
        let folder = std::env::temp_dir().join(format!(
            "gpurpc-c-{}-{}-{}-{layout}-{test}",
            std::process::id(),
            self.images.0,
            self.images.1
        ));
        fs::create_dir_all(&folder).unwrap();
        let mut arguments = vec![test, folder.to_str().unwrap()];
        if options.contains(&"--allow") {
            arguments.push("allowed");
        }
        // What a hostile test gives up halfway keeps its port.
        let options = [options, &["--ports", "1000"]].concat();
        let ran = self.run(&options, image, &arguments);
        let files = files(&folder);
        fs::remove_dir_all(&folder).unwrap();
        self.wrong(layout, test, &ran, end)
            .or_else(|| self.unlike(test, &ran, &files, leaves))
            .map(|what| format!("{test}: {what}; standard error:\n{}", ran.stderr))
    }

    fn wrong(&self, layout: &str, test: &str, ran: &Ran, end: End) -> Option<String> {
        // The first lanes of each warp do not call `exit`, unless they are all there are. On a host
        // each thread is a warp.
        let expected = match end {
            Code(code) => code,
            Exit if self.lanes == 1 => 40,
            Exit => 43,
            Untold if layout.starts_with("llvm") => 125,
            Untold => 0,
        };
        if ran.code != Some(expected) {
            return Some(format!("ended with {:?}, not {expected}", ran.code));
        }
        let reported = ran.stderr.contains(&format!("opcodes: {test} "));
        reported.then(|| "a check failed".to_owned())
    }

    fn unlike(
        &self,
        test: &'static str,
        ran: &Ran,
        files: &BTreeMap<String, String>,
        leaves: Leaves,
    ) -> Option<String> {
        let mut expected = [String::new(), String::new()];
        let mut left = BTreeMap::new();
        for (round, index) in
            (0..2).flat_map(|round| (0..2 * self.threads).map(move |i| (round, i)))
        {
            if round == 1 && index % 3 != 1 {
                continue;
            }
            let thread = Thread { test, index, round };
            match leaves {
                Out(line) => expected[0] += &line(&thread),
                Err(line) => expected[1] += &line(&thread),
                File(text) => drop(left.insert(format!("{test}-{index}-{round}"), text(&thread))),
                Nothing | Reports => {}
            }
        }
        if matches!(leaves, Reports) {
            return None;
        }
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let names = ["standard output", "standard error"];
        for ((name, text), expected) in names.iter().zip([&ran.stdout, &ran.stderr]).zip(&expected)
        {
            if sorted(text) != sorted(expected) {
                return Some(format!("{name} is\n{text}\nnot\n{expected}"));
            }
        }
        // Tests that have nothing to show may leave what they worked with.
        let shown = matches!(leaves, File(_));
        (shown && *files != left).then(|| format!("the files are\n{files:?}\nnot\n{left:?}"))
    }
}

/// The names and contents of the files in `folder`.
fn files(folder: &Path) -> BTreeMap<String, String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let text = fs::read(entry.path()).unwrap();
            (
                entry.file_name().into_string().unwrap(),
                String::from_utf8_lossy(&text).into_owned(),
            )
        })
        .collect()
}
