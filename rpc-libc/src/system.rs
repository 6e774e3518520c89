//! Commands and functions of the host, for who may have them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;

use rpc_server::{Conversation, Failure, Flow, Output, Table};
use rpc_types::Opcode;

use crate::path::text;

mod running;

use running::Running;

type Function = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// Functions of the host that the device may call, by a number of the program's own choice.
///
/// LLVM's `rpc_host_call` takes the address of a host function, which a device only knows if its
/// host program has told it, and the server jumps there, whatever it is. Here the host program tells
/// the device the number under which it has registered the function; any other number does nothing,
/// and its result is 0.
///
/// ```
/// let mut functions = rpc_libc::HostFunctions::new();
/// functions.register(0x1000, |arguments| arguments.iter().map(|byte| u64::from(*byte)).sum());
/// ```
#[derive(Clone, Default)]
pub struct HostFunctions(HashMap<u64, Arc<Function>>);

impl HostFunctions {
    /// No function.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers `function` under `number`, in place of an earlier one. It gets a copy of the bytes
    /// that the device sends, and may block; lanes call it one after the other, lowest first.
    pub fn register(
        &mut self,
        number: u64,
        function: impl Fn(&[u8]) -> u64 + Send + Sync + 'static,
    ) {
        self.0.insert(number, Arc::new(function));
    }
}

impl fmt::Debug for HostFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

pub(crate) fn install(
    table: &mut Table,
    output: &Arc<dyn Output>,
    allowed: bool,
    functions: HostFunctions,
) {
    let output = Arc::clone(output);
    let running = Arc::new(Running::default());
    let commands = Arc::clone(&running);
    table.at_drain(move || commands.end());
    table.conversation(Opcode::SYSTEM, "system", move |conversation| {
        let may = allowed.then(|| Arc::clone(&running));
        system(conversation, Arc::clone(&output), may)
    });
    let functions = Arc::new(functions);
    table.conversation(Opcode::HOST_CALL, "host_call", move |conversation| {
        call(conversation, Arc::clone(&functions))
    });
}

/// What a lane has sent for a command.
enum Order {
    /// Nothing, where C has a null pointer: is there somebody who runs commands?
    Question,
    Command(std::ffi::OsString),
    /// Not a text of C.
    Broken,
}

/// A command with its NUL; what C's `system` gives: the status as of `wait`, -1 without permission.
async fn system(
    mut conversation: Conversation,
    output: Arc<dyn Output>,
    allowed: Option<Arc<Running>>,
) -> Result<Flow, Failure> {
    let messages = conversation.recv_n_lossy(u64::MAX).await?;
    let orders = messages.iter().map(|(lane, message)| {
        if message.is_empty() && messages.lost() >> lane & 1 == 0 {
            Order::Question
        } else {
            text(message).map_or(Order::Broken, Order::Command)
        }
    });
    let orders: Vec<_> = orders.collect();
    let is_command = |order: &Order| matches!(order, Order::Command(_));
    let results = match allowed {
        Some(running) if orders.iter().any(is_command) => {
            let run = move || {
                output.flush();
                let obey = |order| obey(order, Some(&running));
                orders.iter().map(obey).collect()
            };
            conversation.waiting(run).await
        }
        allowed => {
            let answer = |order| obey(order, allowed.as_deref());
            orders.iter().map(answer).collect::<Vec<_>>()
        }
    };
    let mut results = results.into_iter();
    // Lanes come in order.
    conversation
        .send(|_| i64::from(results.next().unwrap_or(-1)))
        .await?;
    Ok(Flow::Continue)
}

/// What has come of it; commands need to be allowed.
fn obey(order: &Order, allowed: Option<&Running>) -> i32 {
    match (order, allowed) {
        (Order::Question, _) => allowed.is_some().into(),
        (Order::Command(command), Some(running)) => shell(command, running),
        (Order::Command(_), None) | (Order::Broken, _) => -1,
    }
}

/// Runs a command of the shell to its end, or that of the run. It has this process's standard streams.
fn shell(command: &OsStr, running: &Running) -> i32 {
    let mut shell = Command::new("/bin/sh");
    let status = running.run(shell.args(["-c", "--"]).arg(command));
    status.map_or(-1, ExitStatusExt::into_raw)
}

/// Arguments, then the function's number; its result.
async fn call(
    mut conversation: Conversation,
    functions: Arc<HostFunctions>,
) -> Result<Flow, Failure> {
    let arguments = conversation.recv_n_lossy(u64::MAX).await?;
    let numbers = conversation.recv::<u64>().await?;
    let lost = arguments.lost();
    let function = |(lane, number)| {
        let function = functions.0.get(number).filter(|_| lost >> lane & 1 == 0);
        (lane, function.cloned())
    };
    let functions: Vec<_> = numbers.iter().map(function).collect();
    let results = if functions.iter().all(|(_, function)| function.is_none()) {
        Vec::new()
    } else {
        let work = move || {
            let run = |(lane, function): &(u32, Option<Arc<Function>>)| {
                let function = function.as_ref();
                function.map_or(0, |function| function(arguments.of(*lane)))
            };
            functions.iter().map(run).collect::<Vec<_>>()
        };
        conversation.waiting(work).await
    };
    let mut results = results.into_iter();
    // Lanes come in order.
    conversation.send(|_| results.next().unwrap_or(0)).await?;
    Ok(Flow::Continue)
}
