//! What the lanes of a warp do together, each with arguments of its own.

use std::fs;

use rpc_port::Warp;

use crate::rig::{Calls, EOF, LIMIT, Layout, Plan, content, on_all_layouts};

on_all_layouts!(lanes_with_files_of_their_own, lanes_with_one_file);

/// Each lane its own path, mode, size, handle.
fn lanes_with_files_of_their_own<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let text = |lane: u32| content(5 + lane as usize * 9000);
    rig.lanes(|warp, client| {
        let lane = warp.lane();
        let path = rig.path(&format!("{lane}"));
        // One of them never gets a file.
        let path = if lane == 2 {
            "/nowhere/2".to_owned()
        } else {
            path
        };
        let file = client.fopen(&path, if lane % 2 == 0 { "w+" } else { "a+" });
        assert_eq!(file == 0, lane == 2);
        let written = client.fwrite(file, &text(lane));
        assert_eq!(
            written as usize,
            if lane == 2 { 0 } else { text(lane).len() }
        );
        assert_eq!(
            client.fseek(file, i64::from(lane), 0),
            if lane == 2 { EOF } else { 0 }
        );
        let read = client.fread(file, 1 << (lane * 5 + 1));
        let from = &text(lane)[lane as usize..];
        let most = from.len().min(1 << (lane * 5 + 1));
        assert!(read == if lane == 2 { &[] } else { &from[..most] });
        if lane == 1 {
            // Without the others.
            warp.converge(0b10);
            assert_eq!(client.fclose(file), 0);
            assert_eq!(client.fclose(file), EOF);
        } else {
            warp.converge(0b1101);
            assert_eq!(client.flags(file).1, lane == 2);
        }
    });
    let drained = rig.service.drain(LIMIT);
    assert_eq!(drained.cancelled, 0);
    for lane in [0, 1, 3] {
        assert!(fs::read(rig.path(&lane.to_string())).unwrap() == text(lane));
    }
}

/// All lanes write to one file and read from it: in the order of lanes.
fn lanes_with_one_file<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let path = rig.path("file");
    let file = rig.client().fopen(&path, "w+");
    let length = |lane: u32| [1, 17_000, 0, 5][lane as usize];
    let text = |lane: u32| vec![b'a' + lane as u8; length(lane)];
    rig.team(|lane, client| {
        assert_eq!(client.fwrite(file, &text(lane)), text(lane).len() as u64);
    });
    assert_eq!(rig.client().fseek(file, 0, 0), 0);
    rig.team(|lane, client| assert!(client.fread(file, length(lane) as u64) == text(lane)));
    rig.team(|lane, client| {
        let closed = client.fclose(file);
        assert_eq!(closed, if lane == 0 { 0 } else { EOF });
    });
    assert!(fs::read(&path).unwrap() == (0..4).flat_map(text).collect::<Vec<_>>());
}
