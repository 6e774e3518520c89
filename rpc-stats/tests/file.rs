//! The file, as loaders write it and monitors find it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rpc_stats::{
    Event, Histogram, Liveness, OpcodeStats, PollerState, PollerStats, PortState, PortStats,
    ReadError, Reader, RunEnd, RunInfo, Snapshot, WriteError, Writer,
};

/// A directory for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rpc-stats-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn histogram() -> impl Strategy<Value = Histogram> {
    proptest::collection::vec((any::<u64>(), 0..1_u64 << 50), 0..20).prop_map(|times| {
        let mut histogram = Histogram::default();
        for (ns, n) in times {
            histogram.record_n(ns >> (ns % 64), n);
        }
        histogram
    })
}

prop_compose! {
    fn run()(
        pid: u32, texts: [String; 3], command: Vec<String>, lanes: u32, blocks: [u32; 3],
        threads: [u32; 3], started_unix_ms: u64, rank: Option<u32>
    ) -> RunInfo {
        let [loader, device, layout] = texts;
        RunInfo { pid, loader, command, device, layout, lanes, blocks, threads, started_unix_ms, rank }
    }
}

prop_compose! {
    fn opcode()(
        opcode: Option<u32>, name: String, n: [u64; 6], latency in histogram(), wait in histogram()
    ) -> OpcodeStats {
        let [calls, lanes, bytes_in, bytes_out, errors, server_ns] = n;
        OpcodeStats {
            opcode, name, calls, lanes, bytes_in, bytes_out, errors, server_ns, latency, wait,
        }
    }
}

prop_compose! {
    fn port()(used: bool, state in 0..4_usize, n: [u64; 6], opcode: Option<u32>) -> PortStats {
        use PortState::{Idle, InHandler, MidExchange, Waiting};
        if !used {
            return PortStats::default();
        }
        let [since_ns, mask, calls, bytes_in, bytes_out, latency_ns] = n;
        let state = [Idle, Waiting, InHandler, MidExchange][state];
        PortStats { state, since_ns, opcode, mask, calls, bytes_in, bytes_out, latency_ns }
    }
}

prop_compose! {
    fn poller()(state in 0..3_usize, n: [u64; 4]) -> PollerStats {
        let [scans, calls, longest_gap_ns, dropped_events] = n;
        let state = [PollerState::Looking, PollerState::InHandler, PollerState::Parked][state];
        PollerStats { state, scans, calls, longest_gap_ns, dropped_events }
    }
}

prop_compose! {
    fn event()(n: [u64; 6], m: [u32; 5]) -> Event {
        let [time_ns, mask, latency_ns, wait_ns, bytes_in, bytes_out] = n;
        let [poller, port, opcode, status, sampled] = m;
        Event {
            time_ns, poller, port, opcode, mask, latency_ns, wait_ns, bytes_in, bytes_out, status,
            sampled,
        }
    }
}

prop_compose! {
    fn snapshot()(
        run in run(), time_ns: u64, end: Option<(u8, u64)>, dropped_events: u64,
        opcodes in proptest::collection::vec(opcode(), 0..5),
        ports in proptest::collection::vec(port(), 0..40),
        pollers in proptest::collection::vec(poller(), 0..5),
        events in proptest::collection::vec(event(), 0..20),
    ) -> Snapshot {
        let end = end.map(|(code, cancelled)| RunEnd { code, cancelled });
        Snapshot { run, sequence: 0, time_ns, end, opcodes, ports, pollers, events, dropped_events }
    }
}

/// What a run with this many ports publishes.
fn large(ports: usize) -> Snapshot {
    let port = |n| PortStats {
        state: PortState::MidExchange,
        since_ns: n,
        opcode: Some(0x6300_0000),
        mask: u64::MAX,
        calls: n,
        bytes_in: n * 64,
        bytes_out: n * 64,
        latency_ns: 1000 + n,
    };
    Snapshot {
        ports: (0..ports as u64).map(port).collect(),
        ..Snapshot::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_published_is_read(snapshots in proptest::collection::vec(snapshot(), 1..5)) {
        let folder = Folder::new("published");
        let path = folder.file("a");
        let mut writer = Writer::create_at(&path, &snapshots[0], false).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        for (n, snapshot) in (1..).zip(&snapshots) {
            if n > 1 {
                prop_assert_eq!(writer.publish(snapshot).unwrap(), n);
            }
            let read = reader.read().unwrap();
            prop_assert_eq!(read, Some(Snapshot { sequence: n, ..snapshot.clone() }));
            prop_assert_eq!(reader.read().unwrap(), None);
        }
    }

    #[test]
    fn garbage_is_refused(bytes: Vec<u8>, start: bool, repeat in 1..20_usize) {
        let folder = Folder::new("garbage");
        let path = folder.file("a");
        let mut all = Vec::new();
        if start {
            all.extend_from_slice(b"gpurpcst\x01\0\0\0");
        }
        for _ in 0..repeat {
            all.extend_from_slice(&bytes);
        }
        fs::write(&path, all).unwrap();
        let read = Reader::open(&path).and_then(|mut reader| reader.read());
        prop_assert!(read.is_err());
    }

    /// Whatever has happened to a file, what is read from it is what was written to it.
    #[test]
    fn damage_is_noticed(
        snapshots in [snapshot(), snapshot()],
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 0..4),
        cut: Option<prop::sample::Index>,
    ) {
        let folder = Folder::new("damage");
        let path = folder.file("a");
        let mut writer = Writer::create_at(&path, &snapshots[0], true).unwrap();
        writer.publish(&snapshots[1]).unwrap();
        drop(writer);
        let mut bytes = fs::read(&path).unwrap();
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        for (index, bit) in flips {
            if !bytes.is_empty() {
                let index = index.index(bytes.len());
                bytes[index] ^= 1 << bit;
            }
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(Some(read)) = Reader::open(&path).and_then(|mut reader| reader.read()) {
            let written = snapshots.into_iter().zip(1..);
            let mut written =
                written.map(|(snapshot, sequence)| Snapshot { sequence, ..snapshot });
            prop_assert!(written.any(|snapshot| snapshot == read));
        }
    }

    /// What says that it is whole may make no sense all the same.
    #[test]
    fn nonsense_with_a_good_checksum_is_refused(
        snapshot in snapshot(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let folder = Folder::new("nonsense");
        let path = folder.file("a");
        drop(Writer::create_at(&path, &snapshot, true).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        for (index, value) in flips {
            let place = 256 + index.index(bytes.len() - 256);
            bytes[place] = value;
        }
        let check = crc32fast::hash(&bytes[256..]);
        bytes[64 + 32..64 + 36].copy_from_slice(&check.to_le_bytes());
        let own = crc32fast::hash(&bytes[64..124]);
        bytes[124..128].copy_from_slice(&own.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        // Some bytes make sense: then they are another snapshot.
        if let Ok(Some(read)) = Reader::open(&path).unwrap().read() {
            let _ = read.opcodes.iter().map(|opcode| opcode.latency.count()).sum::<u64>();
        }
    }
}

#[test]
fn only_what_is_new_is_read_and_written() {
    let folder = Folder::new("new");
    let path = folder.file("a");
    let mut snapshot = large(16384);
    let mut writer = Writer::create_at(&path, &snapshot, false).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let mut sizes = Vec::new();
    for n in 1..50 {
        let read = reader.read().unwrap().unwrap();
        assert_eq!((read.sequence, read.time_ns), (n, snapshot.time_ns));
        assert_eq!(read.ports, snapshot.ports);
        snapshot.time_ns += 100;
        if n % 5 == 0 {
            snapshot.ports[n as usize].calls += 1;
        }
        writer.publish(&snapshot).unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    let largest = sizes.into_iter().max().unwrap();
    assert!(
        largest < 3 << 20,
        "two payloads of half a megabyte: {largest}"
    );
}

#[test]
fn a_reader_in_the_middle_of_a_write_gets_whole_snapshots() {
    let folder = Folder::new("race");
    let path = folder.file("a");
    let mut writer = Writer::create_at(&path, &large(64), false).unwrap();
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..2000 {
                let mut snapshot = large(64 + n % 300);
                snapshot.time_ns = n as u64;
                for port in &mut snapshot.ports {
                    port.mask = n as u64;
                }
                writer.publish(&snapshot).unwrap();
            }
            end.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut reader = Reader::open(&path).unwrap();
        let mut last = 0;
        while !end.load(std::sync::atomic::Ordering::Relaxed) {
            match reader.read() {
                Ok(Some(snapshot)) => {
                    assert!(snapshot.sequence > last);
                    last = snapshot.sequence;
                    if last > 1 {
                        let n = snapshot.time_ns;
                        assert!(snapshot.ports.iter().all(|port| port.mask == n));
                    }
                }
                // Written over faster than it can be read: no loader does that.
                Ok(None) | Err(ReadError::Damaged(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.read().unwrap().unwrap().sequence, 2001);
}

#[test]
fn another_version_is_refused_with_a_sentence() {
    let folder = Folder::new("version");
    let path = folder.file("a");
    drop(Writer::create_at(&path, &Snapshot::default(), true).unwrap());
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[9], 8).unwrap();
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, ReadError::Version { version: 9, .. }));
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn what_is_no_file_of_ours_is_refused() {
    let folder = Folder::new("foreign");
    for path in ["/dev/null", "/dev/zero", "/", "/proc/self/mem"] {
        let error = Reader::open(path).unwrap_err();
        let said = error.to_string();
        assert!(
            matches!(
                error,
                ReadError::NotStatistics(_) | ReadError::Open { .. } | ReadError::Read { .. }
            ),
            "{said}"
        );
    }
    let path = folder.file("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(matches!(
        Reader::open(&path),
        Err(ReadError::NotStatistics(_))
    ));
    let path = folder.file("none");
    assert!(matches!(Reader::open(&path), Err(ReadError::Open { .. })));
    File::create(&path).unwrap();
    assert!(matches!(
        Reader::open(&path),
        Err(ReadError::NotStatistics(_))
    ));
}

#[test]
fn a_file_that_shrinks_or_goes_does_no_harm() {
    let folder = Folder::new("shrinks");
    let path = folder.file("a");
    let mut writer = Writer::create_at(&path, &large(100), false).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.read().unwrap().is_some());
    writer.publish(&large(200)).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(reader.read().unwrap().unwrap().ports.len(), 200);
    drop(writer);
    assert_eq!(reader.liveness(), Liveness::Dead);
    let mut writer = Writer::create_at(&path, &large(100), false).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(300).unwrap();
    assert!(matches!(reader.read(), Err(ReadError::Damaged(_))));
    file.set_len(5000).unwrap();
    assert!(matches!(reader.read(), Err(ReadError::Damaged(_))));
    file.set_len(10).unwrap();
    assert!(matches!(reader.read(), Err(ReadError::NotStatistics(_))));
    // It is the writer's, still: it goes on.
    writer.publish(&large(100)).unwrap();
}

#[test]
fn a_file_is_this_users_alone_and_goes_with_its_writer() {
    let folder = Folder::new("mode");
    let path = folder.file("a");
    let writer = Writer::create_at(&path, &Snapshot::default(), false).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert_eq!(folder.names(), ["a"]);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.liveness(), Liveness::Alive);
    drop(writer);
    assert_eq!(reader.liveness(), Liveness::Dead);
    assert!(folder.names().is_empty());
    drop(Writer::create_at(&path, &Snapshot::default(), true).unwrap());
    assert_eq!(folder.names(), ["a"]);
    assert_eq!(Reader::open(&path).unwrap().liveness(), Liveness::Dead);
}

#[test]
fn what_may_be_replaced_is_and_nothing_else() {
    let folder = Folder::new("replace");
    let create = |path: &Path| Writer::create_at(path, &Snapshot::default(), false);
    let path = folder.file("a");
    // What a killed loader leaves, whole or not.
    drop(Writer::create_at(&path, &Snapshot::default(), true).unwrap());
    drop(create(&path).unwrap());
    for there in ["", "gpurpcst", "gpurpcst of another version"] {
        fs::write(&path, there).unwrap();
        assert!(Writer::check(&path).is_ok());
        assert_eq!(fs::read(&path).unwrap(), there.as_bytes());
        drop(create(&path).unwrap());
        assert!(!path.exists());
    }
    let writer = create(&path).unwrap();
    let said = create(&path).unwrap_err();
    assert!(said.to_string().contains("a loader that runs"), "{said}");
    // Not removed by the one that was refused, nor by one whose name has been taken.
    assert!(Reader::open(&path).is_ok());
    fs::rename(&path, folder.file("b")).unwrap();
    fs::write(&path, "another's").unwrap();
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"another's");
    fs::remove_file(folder.file("b")).unwrap();

    let link = folder.file("link");
    symlink(&path, &link).unwrap();
    let other = |path: &Path, words: &str| {
        for error in [create(path).unwrap_err(), Writer::check(path).unwrap_err()] {
            assert!(matches!(error, WriteError::NotStatistics { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    };
    other(&link, "a symbolic link");
    other(Path::new("/dev/full"), "no regular file");
    other(&folder.0, "a directory");
    other(Path::new("/"), "a directory");
    for there in ["g", "gpurpcs\n", " gpurpcst", "another's"] {
        fs::write(&path, there).unwrap();
        other(&path, "no statistics file");
        assert_eq!(fs::read(&path).unwrap(), there.as_bytes());
    }
    if rustix::process::getuid().is_root() {
        let foreign = folder.file("foreign");
        fs::write(&foreign, "").unwrap();
        std::os::unix::fs::chown(&foreign, Some(12345), None).unwrap();
        let error = create(&foreign).unwrap_err();
        assert!(matches!(error, WriteError::Occupied { .. }), "{error}");
        assert!(error.to_string().contains("another user's"), "{error}");
        fs::remove_file(foreign).unwrap();
    }
    for path in ["/no/such/folder/file", "", "/proc/file"] {
        let error = create(Path::new(path)).unwrap_err();
        assert!(matches!(error, WriteError::Create { .. }), "{error}");
    }
    assert_eq!(folder.names().len(), 2, "nothing unfinished is left");
    assert_eq!(fs::read(&path).unwrap(), b"another's");
}
