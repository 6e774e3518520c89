//! Models of the lock bitmap, for `RUSTFLAGS="--cfg loom" cargo test --release -p rpc-bitmap --test loom`.
#![cfg(loom)]

use loom::thread;
use rpc_bitmap::model::Model;
use rpc_bitmap::{Bitmap, Device, Memory, System};

const DATA: usize = 64;

/// Two threads claim the only bit: each sees what the other did while it held it.
#[test]
fn try_claim_excludes_and_hands_over() {
    loom::model(|| {
        let memory = Model::<Device>::new(&[0], &[], &[DATA]);
        let run = |memory: Model<Device>| {
            let locks: Bitmap<_> = Bitmap::new(memory.clone(), 0, 1);
            if locks.try_claim(0) {
                let mut word = [0];
                memory.read(DATA, &mut word);
                memory.write(DATA, &[word[0] + 1]);
                locks.unlock(0);
                1
            } else {
                0
            }
        };
        let other = thread::spawn({
            let memory = memory.clone();
            move || run(memory)
        });
        let done = run(memory.clone()) + other.join().unwrap();
        let mut word = [0];
        memory.read(DATA, &mut word);
        assert_eq!(word[0], done);
        assert!(done >= 1);
    });
}

/// Three threads, two bits, any start: nobody shares a bit.
#[test]
fn claim_any_excludes() {
    loom::model(|| {
        let memory = Model::<Device>::new(&[0], &[], &[DATA, DATA + 8]);
        let run = |memory: Model<Device>, start| {
            let locks: Bitmap<_> = Bitmap::new(memory.clone(), 0, 2);
            if let Some(bit) = locks.claim_any(start, 2) {
                memory.write(DATA + bit as usize * 8, &[1]);
                locks.unlock(bit);
            }
        };
        let others: Vec<_> = (0..2)
            .map(|start| {
                let memory = memory.clone();
                thread::spawn(move || run(memory, start))
            })
            .collect();
        run(memory, 0);
        for other in others {
            other.join().unwrap();
        }
    });
}

/// A flag bit between two agents, beside a neighbour that somebody else flips: release fence and
/// claim on one side, read and acquire fence on the other.
#[test]
fn a_mailbox_bit_carries_data() {
    loom::model(|| {
        let memory = Model::<System>::new(&[0], &[], &[DATA]);
        let writer = thread::spawn({
            let memory = memory.clone();
            move || {
                memory.write(DATA, &[7]);
                memory.release_fence();
                Bitmap::<_>::new(memory, 0, 2).claim(0);
            }
        });
        let neighbour = thread::spawn({
            let memory = memory.clone();
            move || {
                let bits: Bitmap<_> = Bitmap::new(memory, 0, 2);
                bits.claim(1);
                bits.release(1);
            }
        });
        let inbox: Bitmap<_, true> = Bitmap::new(memory.clone(), 0, 2);
        if !inbox.read(0) {
            memory.acquire_fence();
            let mut word = [0];
            memory.read(DATA, &mut word);
            assert_eq!(word[0], 7);
        }
        writer.join().unwrap();
        neighbour.join().unwrap();
        assert!(!inbox.read(0) && inbox.read(1));
    });
}
