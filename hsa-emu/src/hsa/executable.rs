//! Code objects, executables and their symbols.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use super::agent::put;
use super::runtime::{GPU, done, machine, new_handle, runtime};
use super::types::{Handle, Status, status};
use crate::image::{Image, Refused, Symbol, SymbolIs};

/// A code object in memory.
pub(crate) struct Reader {
    bytes: Vec<u8>,
}

/// Code objects that were loaded together.
#[derive(Default)]
pub(crate) struct Executable {
    frozen: bool,
    images: Vec<Image>,
    symbols: Vec<u64>,
}

/// A symbol that a user knows.
pub(crate) struct SymbolEntry {
    executable: u64,
    symbol: Symbol,
}

/// `hsa_code_object_reader_create_from_memory`
///
/// # Safety
/// `code` is null or has `size` bytes; `reader` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_code_object_reader_create_from_memory(
    code: *const c_void,
    size: usize,
    reader: *mut Handle,
) -> Status {
    let mut runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(status) => return status,
    };
    if code.is_null() || size == 0 || reader.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: not null, so as many bytes as promised.
    let bytes = unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec();
    let handle = new_handle();
    runtime.readers.insert(handle, Arc::new(Reader { bytes }));
    // SAFETY: not null, so valid for writes.
    unsafe { reader.write(Handle { handle }) };
    status::SUCCESS
}

/// `hsa_code_object_reader_destroy`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_code_object_reader_destroy(reader: Handle) -> Status {
    done(runtime().and_then(|mut runtime| {
        let removed = runtime.readers.remove(&reader.handle);
        removed.map(drop).ok_or(status::INVALID_CODE_OBJECT_READER)
    }))
}

/// `hsa_executable_create_alt`
///
/// # Safety
/// `executable` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_executable_create_alt(
    _profile: u32,
    _rounding: u32,
    _options: *const c_char,
    executable: *mut Handle,
) -> Status {
    let mut runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(status) => return status,
    };
    if executable.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let handle = new_handle();
    runtime.executables.insert(handle, Executable::default());
    // SAFETY: not null, so valid for writes.
    unsafe { executable.write(Handle { handle }) };
    status::SUCCESS
}

/// `hsa_executable_load_agent_code_object`
///
/// # Safety
/// `loaded` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_executable_load_agent_code_object(
    executable: Handle,
    agent: Handle,
    reader: Handle,
    _options: *const c_char,
    loaded: *mut Handle,
) -> Status {
    let result = load(executable, agent, reader);
    if let Ok(handle) = result
        && !loaded.is_null()
    {
        // SAFETY: not null, so valid for writes.
        unsafe { loaded.write(Handle { handle }) };
    }
    done(result.map(drop))
}

fn load(executable: Handle, agent: Handle, reader: Handle) -> Result<u64, Status> {
    let mut runtime = runtime()?;
    let reader = runtime.readers.get(&reader.handle).cloned();
    let found = runtime.executables.get(&executable.handle);
    let executable_state = found.ok_or(status::INVALID_EXECUTABLE)?;
    if executable_state.frozen {
        return Err(status::FROZEN_EXECUTABLE);
    }
    if agent != GPU {
        return Err(status::INVALID_AGENT);
    }
    let reader = reader.ok_or(status::INVALID_CODE_OBJECT_READER)?;
    let image = Image::load(machine(), &reader.bytes).map_err(|refused| match refused {
        Refused::Malformed => status::INVALID_CODE_OBJECT,
        Refused::OtherTarget => status::INCOMPATIBLE_ARGUMENTS,
        Refused::Undefined => status::VARIABLE_UNDEFINED,
        Refused::NoMemory => status::OUT_OF_RESOURCES,
    })?;
    let mut handles = Vec::new();
    for symbol in &image.symbols {
        let handle = new_handle();
        let entry = SymbolEntry {
            executable: executable.handle,
            symbol: symbol.clone(),
        };
        runtime.symbols.insert(handle, entry);
        handles.push(handle);
    }
    if let Some(executable) = runtime.executables.get_mut(&executable.handle) {
        executable.symbols.extend(handles);
        executable.images.push(image);
    }
    Ok(new_handle())
}

/// `hsa_executable_freeze`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_executable_freeze(executable: Handle, _options: *const c_char) -> Status {
    done(runtime().and_then(|mut runtime| {
        let found = runtime.executables.get_mut(&executable.handle);
        let executable = found.ok_or(status::INVALID_EXECUTABLE)?;
        if executable.frozen {
            return Err(status::FROZEN_EXECUTABLE);
        }
        executable.frozen = true;
        Ok(())
    }))
}

/// `hsa_executable_validate`: what is loaded is valid.
///
/// # Safety
/// `result` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_executable_validate(executable: Handle, result: *mut u32) -> Status {
    let known = runtime().map(|runtime| runtime.executables.contains_key(&executable.handle));
    match known {
        Err(status) => status,
        Ok(false) => status::INVALID_EXECUTABLE,
        Ok(true) if result.is_null() => status::INVALID_ARGUMENT,
        Ok(true) => {
            // SAFETY: not null, so valid for writes.
            unsafe { result.write(0) };
            status::SUCCESS
        }
    }
}

/// `hsa_executable_destroy`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_executable_destroy(executable: Handle) -> Status {
    done(runtime().and_then(|mut runtime| {
        let removed = runtime.executables.remove(&executable.handle);
        let executable = removed.ok_or(status::INVALID_EXECUTABLE)?;
        for symbol in &executable.symbols {
            runtime.symbols.remove(symbol);
        }
        drop(runtime);
        drop(executable);
        Ok(())
    }))
}

/// `hsa_executable_get_symbol_by_name`
///
/// # Safety
/// `name` is null or text with its end; `agent` is null or valid for reads; `symbol` is null or valid
/// for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_executable_get_symbol_by_name(
    executable: Handle,
    name: *const c_char,
    agent: *const Handle,
    symbol: *mut Handle,
) -> Status {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(status) => return status,
    };
    if name.is_null() || symbol.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: not null, so text.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    // SAFETY: null or valid for reads.
    let agent = unsafe { agent.as_ref() };
    let Some(executable) = runtime.executables.get(&executable.handle) else {
        return status::INVALID_EXECUTABLE;
    };
    let found = executable.symbols.iter().copied().find(|handle| {
        let entry = runtime.symbols.get(handle);
        entry.is_some_and(|entry| entry.symbol.name.as_bytes() == name)
    });
    match found {
        Some(handle) if agent.is_none_or(|&agent| agent == GPU) => {
            // SAFETY: not null, so valid for writes.
            unsafe { symbol.write(Handle { handle }) };
            status::SUCCESS
        }
        _ => status::INVALID_SYMBOL_NAME,
    }
}

/// `hsa_executable_iterate_agent_symbols`
///
/// # Safety
/// `callback` is null or takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_executable_iterate_agent_symbols(
    executable: Handle,
    agent: Handle,
    callback: Option<unsafe extern "C" fn(Handle, Handle, Handle, *mut c_void) -> Status>,
    data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return status::INVALID_ARGUMENT;
    };
    let symbols = match runtime() {
        Err(status) => return status,
        Ok(runtime) => match runtime.executables.get(&executable.handle) {
            Some(executable) => executable.symbols.clone(),
            None => return status::INVALID_EXECUTABLE,
        },
    };
    for handle in symbols {
        // SAFETY: as promised.
        let status = unsafe { callback(executable, agent, Handle { handle }, data) };
        if status != status::SUCCESS {
            return status;
        }
    }
    status::SUCCESS
}

/// `hsa_executable_symbol_get_info`
///
/// # Safety
/// `value` is null or valid for writes of what `attribute` gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_executable_symbol_get_info(
    symbol: Handle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(status) => return status,
    };
    let Some(entry) = runtime.symbols.get(&symbol.handle) else {
        return status::INVALID_EXECUTABLE_SYMBOL;
    };
    if value.is_null() || !runtime.executables.contains_key(&entry.executable) {
        return status::INVALID_ARGUMENT;
    }
    let symbol = &entry.symbol;
    // SAFETY: each answer has the type that the interface gives its attribute; a name's length is
    // asked for first.
    unsafe {
        match (attribute, symbol.is) {
            (0, is) => put(value, u32::from(is != SymbolIs::Variable)),
            (1, _) => put(value, symbol.name.len() as u32),
            (2, _) => {
                value
                    .cast::<u8>()
                    .copy_from(symbol.name.as_ptr(), symbol.name.len());
                status::SUCCESS
            }
            (3, _) => put(value, 0u32),
            (20, _) => put(value, GPU),
            (5, _) => put(value, 1u32),
            (17, _) => put(value, true),
            (21, SymbolIs::Variable) => put(value, symbol.address),
            (6 | 7, SymbolIs::Variable) => put(value, 0u32),
            (8, SymbolIs::Variable) => put(value, 1u32),
            (9, SymbolIs::Variable) => put(value, symbol.size as u32),
            (10, SymbolIs::Variable) => put(value, false),
            (22, SymbolIs::Kernel(_)) => put(value, symbol.address),
            (11, SymbolIs::Kernel(kernel)) => put(value, kernel.arguments),
            (12, SymbolIs::Kernel(_)) => put(value, 16u32),
            (13, SymbolIs::Kernel(kernel)) => put(value, kernel.local),
            (14, SymbolIs::Kernel(kernel)) => put(value, kernel.private),
            (15, SymbolIs::Kernel(kernel)) => put(value, kernel.dynamic),
            _ => status::INVALID_ARGUMENT,
        }
    }
}
