//! Arguments, as a device lays them out and as the host's library gets them.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

use rpc_libc::printf::Form;

/// Where strings lie: that of number `n` at the `n`th multiple.
pub const STRINGS: u64 = 0x7000_0000;

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Int(i32),
    Word(u64),
    Double(f64),
    Text(&'static str),
}

/// A block of arguments as it grows.
#[derive(Clone, Debug)]
pub struct Block {
    form: Form,
    pub bytes: Vec<u8>,
    pub strings: Vec<&'static str>,
}

impl Block {
    pub fn new(form: Form) -> Self {
        Self {
            form,
            bytes: Vec::new(),
            strings: Vec::new(),
        }
    }

    pub fn of(form: Form, values: &[Value]) -> Self {
        let mut block = Self::new(form);
        for value in values {
            block.push(*value);
        }
        block
    }

    pub fn push(&mut self, value: Value) {
        match value {
            Value::Int(value) => self.put(&value.to_le_bytes()),
            Value::Word(value) => self.put(&value.to_le_bytes()),
            Value::Double(value) => self.put(&value.to_le_bytes()),
            Value::Text(text) => {
                self.strings.push(text);
                self.put(&(STRINGS * self.strings.len() as u64).to_le_bytes());
            }
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.form == Form::Natural {
            let start = self.bytes.len().next_multiple_of(bytes.len());
            self.bytes.resize(start, 0xEE);
        }
        self.bytes.extend(bytes);
    }

    /// Where the strings are said to be.
    pub fn addresses(&self) -> impl Iterator<Item = (u64, &'static str)> {
        (1..)
            .map(|number| STRINGS * number)
            .zip(self.strings.iter().copied())
    }

    pub fn string(&self, address: u64) -> &'static str {
        assert_eq!(address % STRINGS, 0);
        self.strings[(address / STRINGS) as usize - 1]
    }
}
