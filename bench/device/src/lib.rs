//! What `gpurpc-bench` measures: each mode is one loop over one kind of call, and checks what comes
//! back. The host program launches it; by hand it is of little use.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

mod bulk;
mod calls;
mod time;

use bench_calls::{Mode, Plan, failure};
use rpc_device::{Error, Program, entry, grid};

/// This thread among those that take part.
#[derive(Clone, Copy)]
struct Me {
    /// Its warp, counted through the grid.
    warp: u64,
    /// Its lane.
    lane: u64,
    /// Its number among the lanes that take part, counted through the grid.
    index: u64,
}

fn plan(program: &Program) -> Option<Plan> {
    let mode = Mode::from_name(program.arg(1)?.to_str().ok()?)?;
    let mut numbers = [0; 5];
    for (index, number) in numbers.iter_mut().enumerate() {
        *number = program.arg(index + 2)?.parse()?;
    }
    Some(Plan::new(mode, numbers)).filter(|plan| plan.width > 0)
}

/// What a call that went wrong makes the thread return.
fn wrong(result: Result<(), Error>) -> i32 {
    match result {
        Ok(()) => failure::ANSWER,
        Err(_) => failure::ERROR,
    }
}

fn main(program: &Program) -> i32 {
    let Some(plan) = plan(program) else {
        return failure::ARGUMENTS;
    };
    // The host launches whole warps.
    let (warp, lane) = (
        grid::global_index() / plan.width,
        grid::global_index() % plan.width,
    );
    if lane >= plan.lanes {
        return 0;
    }
    let me = Me {
        warp,
        lane,
        index: warp * plan.lanes + lane,
    };
    match plan.mode {
        Mode::Floor => calls::floor(&plan),
        Mode::Increment => calls::increment(me, &plan),
        Mode::Kept => calls::kept(me, &plan),
        Mode::Packets => calls::packets(me, &plan),
        Mode::Diverge => calls::diverge(me, &plan),
        Mode::Noop => calls::noop(me, &plan),
        Mode::Fill => bulk::fill(&plan),
        Mode::Send => bulk::send(&plan),
        Mode::Stack => bulk::stack(&plan),
        Mode::Echo => bulk::echo(me, &plan),
        Mode::Idle => time::idle(&plan),
        Mode::First => time::first(&plan),
        Mode::Beside | Mode::Waiting => time::beside(me, &plan),
    }
}

entry!(main);
