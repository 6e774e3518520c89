//! Layouts on which the device cannot be told that its call failed.

mod common;

use std::time::Duration;

use common::{LIMIT, Plan, Rig};
use rpc_bitmap::{Heap, Memory as _, System};
use rpc_port::procedure::Increment;
use rpc_port::{Llvm, Llvm22, Transport};
use rpc_server::{End, Failure};
use rpc_types::{Opcode, Status};

type Memory = Heap<System>;

/// The opcode that nobody handles, and those whose handlers fail.
const UNKNOWN: Opcode = Opcode::user(77);
const FAILS: Opcode = Opcode::user(78);
const PANICS: Opcode = Opcode::user(79);

fn rig<T: common::Layout>() -> Rig<T> {
    let mut plan = Plan::new(8);
    let status = Status::INVALID;
    let table = &mut plan.table;
    table.conversation(FAILS, "fails", move |_| async move {
        Err(Failure::Status(status))
    });
    table.packets(PANICS, "panics", |_, _| panic!("at the disco"));
    plan.start()
}

/// The run ends, and says which call it was; the device does not take its request for an answer.
fn ends<T: common::Layout>(opcode: Opcode, words: &str) {
    let rig = rig::<T>();
    assert_eq!(rig.client(0).call::<Increment>(&1), Ok(2));
    let client = rig.client(3);
    let mut port = client.open(opcode).unwrap().dynamic();
    port.send(8, |_, packet| packet.words[0] = 5).unwrap();
    assert_eq!(rig.service.wait(LIMIT), Some(End::UNTOLD));
    assert_eq!(port.poll_own(), Ok(false));
    // The others are served until somebody ends the run.
    assert_eq!(rig.client(1).call::<Increment>(&2), Ok(3));
    let said = rig.reports();
    let place = format!("port {}", port.index());
    let own = said.iter().find(|said| said.contains("so the run ends"));
    let own = own.unwrap_or_else(|| panic!("{said:?}"));
    assert!(own.contains(words) && own.contains(&place), "{own}");
    let drained = rig.service.drain(Duration::from_millis(100));
    assert!(!drained.late);
    assert_eq!(port.poll_own(), Ok(false), "nor when the run ends");
}

fn all<T: common::Layout>() {
    assert!(!T::HAS_STATUS);
    ends::<T>(UNKNOWN, "0x7500004d");
    ends::<T>(FAILS, "fails");
    ends::<T>(PANICS, "panics");
}

#[test]
fn llvm_22() {
    all::<Llvm22<Memory>>();
}

#[test]
fn llvm() {
    all::<Llvm<Memory>>();
}

/// A header without lanes: nobody is there to be told, and others go on.
#[test]
fn nobody_calls() {
    let rig = rig::<Llvm<Memory>>();
    let geometry = *rig.transport.geometry();
    let shared = rig.transport.shared();
    shared.store64(geometry.headers(), 1 << 40);
    shared.store32(geometry.requests(), 1);
    for n in 0..50 {
        assert_eq!(rig.client(3).call::<Increment>(&n), Ok(n + 1));
    }
    assert_eq!(rig.service.ended(), None);
}
