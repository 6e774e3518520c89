//! A service with `printf`, and a device that calls it as LLVM's libc does.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rpc_libc::printf::{Form, Streams, Written, install_with};
use rpc_port::{DynamicPort, Error, Process};
use rpc_server::{Captured, Conversation, Output, Stream};
use rpc_types::Opcode;

use crate::common::{Layout, Plan, Rig};
use crate::value::{Block, Value};

/// Files in memory, by handle. There is no room for all of a text with `fail` in it.
#[derive(Default)]
pub struct Files(pub Mutex<BTreeMap<u64, Vec<u8>>>);

impl Files {
    fn put(&self, handle: u64, text: &[u8]) -> Option<u64> {
        let mut files = self.0.lock().unwrap();
        let file = files.get_mut(&handle)?;
        let fails = text.windows(4).any(|part| part == b"fail");
        // As much as there was room for.
        let written = if fails { text.len() / 2 } else { text.len() };
        file.extend_from_slice(&text[..written]);
        Some(written as u64)
    }
}

impl Streams for Files {
    fn write<'c>(
        &'c self,
        port: &'c mut Conversation,
        texts: Vec<(u32, u64, Vec<u8>)>,
    ) -> Written<'c> {
        Box::pin(async move {
            // Something that has to wait.
            port.blocking(|| ()).await;
            let texts = texts.into_iter();
            texts
                .filter_map(|(lane, handle, text)| Some((lane, self.put(handle, &text)?)))
                .collect()
        })
    }
}

/// A service, and where its text goes.
pub struct Host<T: Layout> {
    pub rig: Rig<T>,
    pub output: Arc<Captured>,
    pub files: Arc<Files>,
}

impl<T: Layout> Host<T> {
    pub fn new() -> Self {
        Self::planned(|_| ())
    }

    pub fn planned(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::new(4);
        change(&mut plan);
        let output = Arc::new(Captured::default());
        let files = Arc::new(Files::default());
        for handle in 1..=3 {
            files.0.lock().unwrap().insert(handle * 4, Vec::new());
        }
        let to = plan.output.take();
        let to = to.unwrap_or_else(|| Arc::clone(&output) as Arc<dyn Output>);
        install_with(&mut plan.table, &to, &(Arc::clone(&files) as _));
        plan.output = Some(to);
        let rig = plan.start();
        Self { rig, output, files }
    }

    /// One lane's call.
    pub fn call(&self, asking: &Asking) -> Result<Told, Error> {
        let client = self.rig.client(0);
        asking.go(&mut client.open(asking.opcode).unwrap().dynamic())
    }

    /// A call of as many lanes together as there are askings, which have one opcode.
    pub fn calls(&self, askings: &[Asking]) -> Vec<Told> {
        let told = Mutex::new(BTreeMap::new());
        self.rig.team(askings.len() as u32, |lane, client| {
            let asking = &askings[lane as usize];
            let mut port = client.open(asking.opcode).unwrap().dynamic();
            let answer = asking.go(&mut port).unwrap();
            told.lock().unwrap().insert(lane, answer);
        });
        told.into_inner().unwrap().into_values().collect()
    }

    pub fn stdout(&self) -> String {
        self.output.text(Stream::Stdout)
    }

    pub fn file(&self, handle: u64) -> String {
        let files = self.files.0.lock().unwrap();
        String::from_utf8(files[&handle].clone()).unwrap()
    }
}

/// What a lane sends, in each step.
#[derive(Clone, Debug)]
pub struct Asking {
    pub opcode: Opcode,
    pub handle: Option<u64>,
    pub format: Vec<u8>,
    pub block: Vec<u8>,
    /// Strings by their address, with what ends them.
    pub strings: BTreeMap<u64, Vec<u8>>,
}

impl Asking {
    pub fn new(format: &str, values: &[Value]) -> Self {
        Self::formed(Form::Natural, Opcode::PRINTF_TO_STDOUT, format, values)
    }

    pub fn formed(form: Form, opcode: Opcode, format: &str, values: &[Value]) -> Self {
        let block = Block::of(form, values);
        let strings = block.addresses();
        let strings = strings.map(|(at, text)| (at, [text.as_bytes(), b"\0"].concat()));
        Self {
            opcode,
            handle: None,
            format: [format.as_bytes(), b"\0"].concat(),
            strings: strings.collect(),
            block: block.bytes,
        }
    }

    pub fn to(handle: u64, format: &str, values: &[Value]) -> Self {
        let mut asking = Self::formed(Form::Natural, Opcode::PRINTF_TO_STREAM, format, values);
        asking.handle = Some(handle);
        asking
    }

    /// As LLVM's libc does it.
    pub fn go<P: Process>(&self, port: &mut DynamicPort<P>) -> Result<Told, Error> {
        if let Some(handle) = self.handle {
            port.send(8, |_, packet| packet.set(&handle))?;
        }
        port.send_n(|_| &self.format)?;
        let mut told = Told::default();
        port.recv(8, |_, packet| told.asked = packet.get())?;
        port.send_n(|_| if told.asked == 0 { &[] } else { &self.block })?;
        loop {
            let mut answer = [0_u64; 2];
            port.recv(16, |_, packet| answer = packet.get())?;
            let [result, address] = answer;
            told.result = result as i64;
            if !port.any(|_| address != 0) {
                return Ok(told);
            }
            let string = self.strings.get(&address).map_or(&[][..], Vec::as_slice);
            if address != 0 {
                told.strings.push(address);
            }
            port.send_n(|_| string)?;
        }
    }
}

/// What a lane is told, in each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Bytes of the block.
    pub asked: u64,
    /// Addresses of strings, as they were asked for.
    pub strings: Vec<u64>,
    pub result: i64,
}
