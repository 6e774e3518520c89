//! Code objects, executables and their symbols.

use super::*;

pub(super) unsafe extern "C" fn reader_create(
    code: *const c_void,
    size: usize,
    reader: *mut hsa_code_object_reader_t,
) -> hsa_status_t {
    enter!("hsa_code_object_reader_create_from_memory");
    // SAFETY: the loader's image, of so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) };
    assert!(bytes.starts_with(b"\x7fELF"));
    let handle = made("reader");
    // SAFETY: the loader's place for what is made.
    unsafe { (*reader).handle = handle };
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn reader_destroy(reader: hsa_code_object_reader_t) -> hsa_status_t {
    known(reader.handle, "reader", true);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn executable_create(
    _: hsa_profile_t,
    _: hsa_default_float_rounding_mode_t,
    _: *const c_char,
    executable: *mut hsa_executable_t,
) -> hsa_status_t {
    enter!("hsa_executable_create_alt");
    let handle = made("executable");
    // SAFETY: the loader's place for what is made.
    unsafe { (*executable).handle = handle };
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn executable_destroy(executable: hsa_executable_t) -> hsa_status_t {
    known(executable.handle, "executable", true);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn executable_load(
    executable: hsa_executable_t,
    agent: hsa_agent_t,
    reader: hsa_code_object_reader_t,
    _: *const c_char,
    _: *mut hsa_loaded_code_object_t,
) -> hsa_status_t {
    enter!("hsa_executable_load_agent_code_object");
    known(executable.handle, "executable", false);
    known(reader.handle, "reader", false);
    assert_eq!(agent.handle, GPU);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn executable_freeze(
    executable: hsa_executable_t,
    _: *const c_char,
) -> hsa_status_t {
    enter!("hsa_executable_freeze");
    known(executable.handle, "executable", false);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn executable_validate(
    executable: hsa_executable_t,
    result: *mut u32,
) -> hsa_status_t {
    enter!("hsa_executable_validate");
    known(executable.handle, "executable", false);
    // SAFETY: the loader's place for the result.
    unsafe { *result = 0 };
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn symbol_by_name(
    executable: hsa_executable_t,
    name: *const c_char,
    agent: *const hsa_agent_t,
    symbol: *mut hsa_executable_symbol_t,
) -> hsa_status_t {
    enter!("hsa_executable_get_symbol_by_name");
    known(executable.handle, "executable", false);
    // SAFETY: the loader points to one agent.
    assert_eq!(unsafe { (*agent).handle }, GPU);
    // SAFETY: the loader's name, which ends with a zero.
    let handle = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"_start.kd" => OBJECT,
        b"_begin.kd" => OBJECT + 1,
        b"_end.kd" => OBJECT + 2,
        name if name == CLIENT.as_bytes() => OBJECT + 3,
        _ => return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
    };
    // SAFETY: the loader's place for what is made.
    unsafe { (*symbol).handle = handle };
    HSA_STATUS_SUCCESS
}
