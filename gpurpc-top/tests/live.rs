//! A loader's file as a source: found, waited for, not mistaken, kept to the end.

use std::path::PathBuf;

use gpurpc_top::live::Live;
use gpurpc_top::source::{Health, Source};
use rpc_stats::{RunInfo, Snapshot, Writer};

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("gpurpc-live-{name}-{}", std::process::id()))
}

fn of(pid: u32) -> Snapshot {
    Snapshot {
        run: RunInfo {
            pid,
            ..RunInfo::default()
        },
        ..Snapshot::default()
    }
}

#[test]
fn a_file_is_waited_for_and_read_to_its_end() {
    let path = path("end");
    let mut live = Live::new(path.clone());
    assert_eq!(live.look().health, Health::Starting);
    let pid = std::process::id();
    let mut writer = Writer::create_at(&path, &of(pid), false).unwrap();
    let look = live.look();
    assert_eq!(look.health, Health::Alive);
    assert_eq!(look.snapshot.unwrap().run.pid, pid);
    assert_eq!(live.look().snapshot, None, "nothing new");
    let last = Snapshot {
        time_ns: 7,
        ..of(pid)
    };
    writer.publish(&last).unwrap();
    drop(writer);
    // The file is gone by now.
    let look = live.look();
    assert_eq!(look.snapshot.unwrap().time_ns, 7);
    assert_eq!(look.health, Health::Gone);
}

#[test]
fn an_earlier_run_is_not_mistaken_for_this_one() {
    let path = path("stale");
    // Numbers of processes are used again.
    for earlier in [1, 2] {
        drop(Writer::create_at(&path, &of(earlier), true).unwrap());
        let mut live = Live::of_next(Some(path.clone())).started(2);
        assert_eq!(live.look().health, Health::Starting);
        let writer = Writer::create_at(&path, &of(2), false).unwrap();
        let look = live.look();
        assert_eq!(
            (look.snapshot.unwrap().run.pid, look.health),
            (2, Health::Alive)
        );
        drop(writer);
    }
}

/// Nor in the usual folder.
#[test]
fn an_earlier_process_of_the_same_number_is_not_mistaken_for_this_one() {
    let own = std::process::id();
    let earlier = Writer::create(&of(own), true).unwrap();
    let kept = earlier.path().to_owned();
    drop(earlier);
    let mut live = Live::of_next(None).started(own);
    assert_eq!(live.look().health, Health::Starting);
    let writer = Writer::create(&of(own), false).unwrap();
    let look = live.look();
    let path = live.path().map(std::path::Path::to_owned);
    std::fs::remove_file(&kept).unwrap();
    assert_eq!(look.health, Health::Alive);
    assert_eq!(path.as_deref(), Some(writer.path()));
}

#[test]
fn what_is_no_file_of_ours_is_named() {
    let path = path("other");
    std::fs::write(&path, "something else").unwrap();
    let mut live = Live::new(path.clone());
    let Health::Blind(why) = live.look().health else {
        panic!("not blind");
    };
    std::fs::remove_file(&path).unwrap();
    assert!(why.contains("no statistics file"), "{why}");
}

#[test]
fn a_file_that_never_comes_is_given_up() {
    let mut live = Live::new("/no/such/file".into());
    let blind = (0..1000).find(|_| matches!(live.look().health, Health::Blind(_)));
    assert!(blind.is_some());
}
