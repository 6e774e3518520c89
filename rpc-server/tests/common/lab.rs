//! A device's memory whose copies take as long as a test wants, and messages by reference put
//! together by hand.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use rpc_port::{DynamicPort, Error, Process, Sink};
use rpc_server::{DeviceMemory, MemoryError, Staging};
use rpc_types::stream::REFERENCE;

/// Where the memory starts.
pub const BASE: u64 = 0x7_0000_0000;
/// Its bytes.
pub const SIZE: usize = 1 << 20;

/// How a [`Lab`] works.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Staging buffers.
    pub buffers: usize,
    /// Bytes of each.
    pub size: usize,
    /// How often a copy is asked for in vain.
    pub polls: usize,
}

/// Memory with content, and a record of what was done.
pub struct Lab {
    kind: Kind,
    memory: Mutex<Vec<u8>>,
    free: AtomicUsize,
    /// Given back in the middle of a copy.
    parked: Mutex<Vec<Running>>,
    /// No copy comes to its end.
    pub held: AtomicBool,
    /// Copies fail: when they are started, or by what is found out later.
    pub refuses: AtomicBool,
    pub fails: AtomicBool,
    /// Calls so far, of each kind and of any.
    pub staged: AtomicUsize,
    pub blocking: AtomicUsize,
    pub calls: AtomicUsize,
}

struct Running {
    address: u64,
    length: usize,
    to_host: bool,
    left: usize,
}

impl Lab {
    pub fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Self {
            kind,
            memory: Mutex::new((0..SIZE).map(|i| (i * 31 + i / 977) as u8).collect()),
            free: AtomicUsize::new(kind.buffers),
            parked: Mutex::default(),
            held: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            fails: AtomicBool::new(false),
            staged: AtomicUsize::new(0),
            blocking: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        })
    }

    pub fn at(&self, address: u64, length: usize) -> Vec<u8> {
        let start = (address - BASE) as usize;
        self.memory.lock().unwrap()[start..start + length].to_vec()
    }

    /// Whether no buffer is lent, or in use by a copy.
    pub fn has_all(&self) -> bool {
        self.sweep();
        self.free.load(SeqCst) == self.kind.buffers
    }

    /// Buffers that a copy uses for which nobody waits.
    pub fn parked(&self) -> usize {
        self.parked.lock().unwrap().len()
    }

    fn sweep(&self) {
        let mut parked = self.parked.lock().unwrap();
        let before = parked.len();
        parked.retain_mut(|running| !self.goes_on(running));
        self.free.fetch_add(before - parked.len(), SeqCst);
    }

    /// Whether the copy is over now.
    fn goes_on(&self, running: &mut Running) -> bool {
        if self.held.load(SeqCst) {
            return false;
        }
        let over = running.left == 0;
        running.left = running.left.saturating_sub(1);
        over
    }

    fn check(&self, address: u64, length: usize) -> Result<usize, MemoryError> {
        self.calls.fetch_add(1, SeqCst);
        if self.refuses.load(SeqCst) {
            return Err(MemoryError::Device("it is on fire".into()));
        }
        let start = address.checked_sub(BASE).map(|start| start as usize);
        start
            .filter(|start| *start <= SIZE && length <= SIZE - start)
            .ok_or(MemoryError::OutOfRange { address, length })
    }

    fn wait(&self) {
        while self.held.load(SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl DeviceMemory for Lab {
    fn allocate(&self, _: u64) -> Option<u64> {
        None
    }

    fn free(&self, _: u64) -> bool {
        false
    }

    fn copy_to_host(&self, from: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.blocking.fetch_add(1, SeqCst);
        let start = self.check(from, into.len())?;
        self.wait();
        into.copy_from_slice(&self.memory.lock().unwrap()[start..start + into.len()]);
        Ok(())
    }

    fn copy_to_device(&self, from: &[u8], to: u64) -> Result<(), MemoryError> {
        self.blocking.fetch_add(1, SeqCst);
        let start = self.check(to, from.len())?;
        self.wait();
        self.memory.lock().unwrap()[start..start + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn staging(self: Arc<Self>) -> Option<Box<dyn Staging>> {
        self.sweep();
        self.free
            .fetch_update(SeqCst, SeqCst, |free| free.checked_sub(1))
            .ok()?;
        Some(Box::new(Bench {
            bytes: vec![0xEE; self.kind.size],
            lab: self,
            filled: 0,
            running: None,
        }))
    }
}

struct Bench {
    lab: Arc<Lab>,
    bytes: Vec<u8>,
    filled: usize,
    running: Option<Running>,
}

impl Bench {
    fn start(&mut self, address: u64, length: usize, to_host: bool) -> Result<(), MemoryError> {
        assert!(self.running.is_none() && length <= self.bytes.len());
        self.lab.staged.fetch_add(1, SeqCst);
        self.lab.check(address, length)?;
        let left = self.lab.kind.polls;
        self.running = Some(Running {
            address,
            length,
            to_host,
            left,
        });
        Ok(())
    }
}

impl Staging for Bench {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn start_to_host(&mut self, from: u64, length: usize) -> Result<(), MemoryError> {
        self.start(from, length, true)
    }

    fn start_to_device(&mut self, length: usize, to: u64) -> Result<(), MemoryError> {
        self.start(to, length, false)
    }

    /// The bytes move at the end, so that whoever looks too early sees it.
    fn is_done(&mut self) -> Result<bool, MemoryError> {
        self.lab.calls.fetch_add(1, SeqCst);
        let Some(running) = &mut self.running else {
            return Ok(true);
        };
        if self.lab.fails.load(SeqCst) {
            return Err(MemoryError::Device("it has fallen down".into()));
        }
        if !self.lab.goes_on(running) {
            return Ok(false);
        }
        let mut memory = self.lab.memory.lock().unwrap();
        let start = (running.address - BASE) as usize;
        let (there, here) = (
            &mut memory[start..start + running.length],
            &mut self.bytes[..running.length],
        );
        if running.to_host {
            here.copy_from_slice(there);
            self.filled = running.length;
        } else {
            there.copy_from_slice(here);
            self.filled = 0;
        }
        self.running = None;
        Ok(true)
    }

    fn bytes(&self) -> &[u8] {
        match self.running {
            None => &self.bytes[..self.filled],
            Some(_) => &[],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self.running {
            None => &mut self.bytes,
            Some(_) => &mut [],
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        match self.running.take() {
            Some(running) => self.lab.parked.lock().unwrap().push(running),
            None => {
                self.lab.free.fetch_add(1, SeqCst);
            }
        }
    }
}

/// A message as its lane sends it.
#[derive(Clone, Copy, Debug)]
pub enum Sent<'m> {
    Packets(&'m [u8]),
    /// Address and length.
    Reference(u64, u64),
}

/// Sends a message on each lane; waits for the acknowledgement if one of them needs it. A lane of
/// a packet for each hand-over: with references only, or on all lanes of the warp.
pub fn send<P: Process>(port: &mut DynamicPort<P>, sent: Sent<'_>) -> Result<(), Error> {
    let (words, message) = match sent {
        Sent::Packets(message) => ([message.len() as u64, 0], message),
        Sent::Reference(address, length) => ([length | REFERENCE, address], &[][..]),
    };
    let payload = port.payload();
    let (mut position, mut head) = (0, 8);
    loop {
        let count = (message.len() - position).min(payload - head);
        port.send(payload, |_, packet| {
            if head > 0 {
                packet.words[..2].copy_from_slice(&words);
            }
            packet.bytes_mut()[head..head + count]
                .copy_from_slice(&message[position..position + count]);
        })?;
        (position, head) = (position + count, 0);
        if !port.any(|_| position < message.len()) {
            break;
        }
    }
    if port.any(|_| matches!(sent, Sent::Reference(..))) {
        port.recv(0, |_, _| ())?;
    }
    Ok(())
}

/// A message as its lane gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Packets(Vec<u8>),
    /// The length that was told.
    Reference(u64),
}

#[derive(Default)]
struct Half {
    told: u64,
    bytes: Vec<u8>,
}

impl Sink for Half {
    fn begin(&mut self, _: u32, length: u64) -> bool {
        self.told = length;
        true
    }

    fn chunk(&mut self, _: u32, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// Receives what comes in packets, before an answer is due.
fn receive_first<P: Process>(port: &mut DynamicPort<P>) -> Result<Half, Error> {
    let payload = port.payload();
    let (mut half, mut head) = (Half::default(), 8);
    loop {
        port.recv(payload, |_, packet| {
            if head > 0 {
                half.told = packet.words[0];
            }
            let length = if half.told & REFERENCE == 0 {
                half.told as usize
            } else {
                0
            };
            let count = (length - half.bytes.len()).min(payload - head);
            half.bytes
                .extend_from_slice(&packet.bytes()[head..head + count]);
        })?;
        head = 0;
        let length = half.told as usize;
        if !port.any(|_| half.told & REFERENCE == 0 && half.bytes.len() < length) {
            return Ok(half);
        }
    }
}

/// Receives a message on each lane. One that comes by reference goes to `place`, an address and
/// the room there; to packets if that is 0.
pub fn receive<P: Process>(port: &mut DynamicPort<P>, place: [u64; 2]) -> Result<Got, Error> {
    let first = receive_first(port)?;
    let referred = first.told & REFERENCE != 0;
    if !port.any(|_| referred) {
        return Ok(Got::Packets(first.bytes));
    }
    port.send(16, |_, packet| packet.words[..2].copy_from_slice(&place))?;
    let mut second = Half::default();
    port.recv_n(&mut second)?;
    if referred && place[0] == 0 {
        assert_eq!(second.told, first.told & !REFERENCE);
        return Ok(Got::Packets(second.bytes));
    }
    assert_eq!(second.told, 0, "all is there already");
    Ok(if referred {
        Got::Reference(first.told & !REFERENCE)
    } else {
        Got::Packets(first.bytes)
    })
}
