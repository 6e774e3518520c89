// Made from the headers of the HSA runtime by `cargo xtask hsa-sys`: change xtask/src/hsa.rs instead.

pub const HSA_STATUS_SUCCESS: hsa_status_t = 0;
pub const HSA_STATUS_INFO_BREAK: hsa_status_t = 1;
pub const HSA_STATUS_ERROR: hsa_status_t = 4096;
pub const HSA_STATUS_ERROR_INVALID_ARGUMENT: hsa_status_t = 4097;
pub const HSA_STATUS_ERROR_INVALID_QUEUE_CREATION: hsa_status_t = 4098;
pub const HSA_STATUS_ERROR_INVALID_ALLOCATION: hsa_status_t = 4099;
pub const HSA_STATUS_ERROR_INVALID_AGENT: hsa_status_t = 4100;
pub const HSA_STATUS_ERROR_INVALID_REGION: hsa_status_t = 4101;
pub const HSA_STATUS_ERROR_INVALID_SIGNAL: hsa_status_t = 4102;
pub const HSA_STATUS_ERROR_INVALID_QUEUE: hsa_status_t = 4103;
pub const HSA_STATUS_ERROR_OUT_OF_RESOURCES: hsa_status_t = 4104;
pub const HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: hsa_status_t = 4105;
pub const HSA_STATUS_ERROR_RESOURCE_FREE: hsa_status_t = 4106;
pub const HSA_STATUS_ERROR_NOT_INITIALIZED: hsa_status_t = 4107;
pub const HSA_STATUS_ERROR_REFCOUNT_OVERFLOW: hsa_status_t = 4108;
pub const HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS: hsa_status_t = 4109;
pub const HSA_STATUS_ERROR_INVALID_INDEX: hsa_status_t = 4110;
pub const HSA_STATUS_ERROR_INVALID_ISA: hsa_status_t = 4111;
pub const HSA_STATUS_ERROR_INVALID_ISA_NAME: hsa_status_t = 4119;
pub const HSA_STATUS_ERROR_INVALID_CODE_OBJECT: hsa_status_t = 4112;
pub const HSA_STATUS_ERROR_INVALID_EXECUTABLE: hsa_status_t = 4113;
pub const HSA_STATUS_ERROR_FROZEN_EXECUTABLE: hsa_status_t = 4114;
pub const HSA_STATUS_ERROR_INVALID_SYMBOL_NAME: hsa_status_t = 4115;
pub const HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED: hsa_status_t = 4116;
pub const HSA_STATUS_ERROR_VARIABLE_UNDEFINED: hsa_status_t = 4117;
pub const HSA_STATUS_ERROR_EXCEPTION: hsa_status_t = 4118;
pub const HSA_STATUS_ERROR_INVALID_CODE_SYMBOL: hsa_status_t = 4120;
pub const HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL: hsa_status_t = 4121;
pub const HSA_STATUS_ERROR_INVALID_FILE: hsa_status_t = 4128;
pub const HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER: hsa_status_t = 4129;
pub const HSA_STATUS_ERROR_INVALID_CACHE: hsa_status_t = 4130;
pub const HSA_STATUS_ERROR_INVALID_WAVEFRONT: hsa_status_t = 4131;
pub const HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP: hsa_status_t = 4132;
pub const HSA_STATUS_ERROR_INVALID_RUNTIME_STATE: hsa_status_t = 4133;
pub const HSA_STATUS_ERROR_FATAL: hsa_status_t = 4134;
pub type hsa_status_t = ::core::ffi::c_uint;
pub const HSA_PROFILE_BASE: hsa_profile_t = 0;
pub const HSA_PROFILE_FULL: hsa_profile_t = 1;
pub type hsa_profile_t = ::core::ffi::c_uint;
pub const HSA_SYSTEM_INFO_VERSION_MAJOR: hsa_system_info_t = 0;
pub const HSA_SYSTEM_INFO_VERSION_MINOR: hsa_system_info_t = 1;
pub const HSA_SYSTEM_INFO_TIMESTAMP: hsa_system_info_t = 2;
pub const HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY: hsa_system_info_t = 3;
pub const HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT: hsa_system_info_t = 4;
pub const HSA_SYSTEM_INFO_ENDIANNESS: hsa_system_info_t = 5;
pub const HSA_SYSTEM_INFO_MACHINE_MODEL: hsa_system_info_t = 6;
pub const HSA_SYSTEM_INFO_EXTENSIONS: hsa_system_info_t = 7;
pub const HSA_AMD_SYSTEM_INFO_BUILD_VERSION: hsa_system_info_t = 512;
pub const HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED: hsa_system_info_t = 513;
pub const HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT: hsa_system_info_t = 514;
pub type hsa_system_info_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_agent_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_agent_s"][::core::mem::size_of::<hsa_agent_s>() - 8usize];
    ["Alignment of hsa_agent_s"][::core::mem::align_of::<hsa_agent_s>() - 8usize];
    ["Offset of field: hsa_agent_s::handle"][::core::mem::offset_of!(hsa_agent_s, handle) - 0usize];
};
pub type hsa_agent_t = hsa_agent_s;
pub const HSA_AGENT_FEATURE_KERNEL_DISPATCH: hsa_agent_feature_t = 1;
pub const HSA_AGENT_FEATURE_AGENT_DISPATCH: hsa_agent_feature_t = 2;
pub type hsa_agent_feature_t = ::core::ffi::c_uint;
pub const HSA_DEVICE_TYPE_CPU: hsa_device_type_t = 0;
pub const HSA_DEVICE_TYPE_GPU: hsa_device_type_t = 1;
pub const HSA_DEVICE_TYPE_DSP: hsa_device_type_t = 2;
pub type hsa_device_type_t = ::core::ffi::c_uint;
pub const HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT: hsa_default_float_rounding_mode_t = 0;
pub const HSA_DEFAULT_FLOAT_ROUNDING_MODE_ZERO: hsa_default_float_rounding_mode_t = 1;
pub const HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR: hsa_default_float_rounding_mode_t = 2;
pub type hsa_default_float_rounding_mode_t = ::core::ffi::c_uint;
pub const HSA_AGENT_INFO_NAME: hsa_agent_info_t = 0;
pub const HSA_AGENT_INFO_VENDOR_NAME: hsa_agent_info_t = 1;
pub const HSA_AGENT_INFO_FEATURE: hsa_agent_info_t = 2;
pub const HSA_AGENT_INFO_MACHINE_MODEL: hsa_agent_info_t = 3;
pub const HSA_AGENT_INFO_PROFILE: hsa_agent_info_t = 4;
pub const HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE: hsa_agent_info_t = 5;
pub const HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES: hsa_agent_info_t = 23;
pub const HSA_AGENT_INFO_FAST_F16_OPERATION: hsa_agent_info_t = 24;
pub const HSA_AGENT_INFO_WAVEFRONT_SIZE: hsa_agent_info_t = 6;
pub const HSA_AGENT_INFO_WORKGROUP_MAX_DIM: hsa_agent_info_t = 7;
pub const HSA_AGENT_INFO_WORKGROUP_MAX_SIZE: hsa_agent_info_t = 8;
pub const HSA_AGENT_INFO_GRID_MAX_DIM: hsa_agent_info_t = 9;
pub const HSA_AGENT_INFO_GRID_MAX_SIZE: hsa_agent_info_t = 10;
pub const HSA_AGENT_INFO_FBARRIER_MAX_SIZE: hsa_agent_info_t = 11;
pub const HSA_AGENT_INFO_QUEUES_MAX: hsa_agent_info_t = 12;
pub const HSA_AGENT_INFO_QUEUE_MIN_SIZE: hsa_agent_info_t = 13;
pub const HSA_AGENT_INFO_QUEUE_MAX_SIZE: hsa_agent_info_t = 14;
pub const HSA_AGENT_INFO_QUEUE_TYPE: hsa_agent_info_t = 15;
pub const HSA_AGENT_INFO_NODE: hsa_agent_info_t = 16;
pub const HSA_AGENT_INFO_DEVICE: hsa_agent_info_t = 17;
pub const HSA_AGENT_INFO_CACHE_SIZE: hsa_agent_info_t = 18;
pub const HSA_AGENT_INFO_ISA: hsa_agent_info_t = 19;
pub const HSA_AGENT_INFO_EXTENSIONS: hsa_agent_info_t = 20;
pub const HSA_AGENT_INFO_VERSION_MAJOR: hsa_agent_info_t = 21;
pub const HSA_AGENT_INFO_VERSION_MINOR: hsa_agent_info_t = 22;
pub type hsa_agent_info_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_signal_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_signal_s"][::core::mem::size_of::<hsa_signal_s>() - 8usize];
    ["Alignment of hsa_signal_s"][::core::mem::align_of::<hsa_signal_s>() - 8usize];
    ["Offset of field: hsa_signal_s::handle"]
        [::core::mem::offset_of!(hsa_signal_s, handle) - 0usize];
};
pub type hsa_signal_t = hsa_signal_s;
pub type hsa_signal_value_t = i64;
pub const HSA_SIGNAL_CONDITION_EQ: hsa_signal_condition_t = 0;
pub const HSA_SIGNAL_CONDITION_NE: hsa_signal_condition_t = 1;
pub const HSA_SIGNAL_CONDITION_LT: hsa_signal_condition_t = 2;
pub const HSA_SIGNAL_CONDITION_GTE: hsa_signal_condition_t = 3;
pub type hsa_signal_condition_t = ::core::ffi::c_uint;
pub const HSA_WAIT_STATE_BLOCKED: hsa_wait_state_t = 0;
pub const HSA_WAIT_STATE_ACTIVE: hsa_wait_state_t = 1;
pub type hsa_wait_state_t = ::core::ffi::c_uint;
pub const HSA_QUEUE_TYPE_MULTI: hsa_queue_type_t = 0;
pub const HSA_QUEUE_TYPE_SINGLE: hsa_queue_type_t = 1;
pub const HSA_QUEUE_TYPE_COOPERATIVE: hsa_queue_type_t = 2;
pub type hsa_queue_type_t = ::core::ffi::c_uint;
pub type hsa_queue_type32_t = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_queue_s {
    pub type_: hsa_queue_type32_t,
    pub features: u32,
    pub base_address: *mut ::core::ffi::c_void,
    pub doorbell_signal: hsa_signal_t,
    pub size: u32,
    pub reserved1: u32,
    pub id: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_queue_s"][::core::mem::size_of::<hsa_queue_s>() - 40usize];
    ["Alignment of hsa_queue_s"][::core::mem::align_of::<hsa_queue_s>() - 8usize];
    ["Offset of field: hsa_queue_s::type_"][::core::mem::offset_of!(hsa_queue_s, type_) - 0usize];
    ["Offset of field: hsa_queue_s::features"]
        [::core::mem::offset_of!(hsa_queue_s, features) - 4usize];
    ["Offset of field: hsa_queue_s::base_address"]
        [::core::mem::offset_of!(hsa_queue_s, base_address) - 8usize];
    ["Offset of field: hsa_queue_s::doorbell_signal"]
        [::core::mem::offset_of!(hsa_queue_s, doorbell_signal) - 16usize];
    ["Offset of field: hsa_queue_s::size"][::core::mem::offset_of!(hsa_queue_s, size) - 24usize];
    ["Offset of field: hsa_queue_s::reserved1"]
        [::core::mem::offset_of!(hsa_queue_s, reserved1) - 28usize];
    ["Offset of field: hsa_queue_s::id"][::core::mem::offset_of!(hsa_queue_s, id) - 32usize];
};
pub type hsa_queue_t = hsa_queue_s;
pub const HSA_PACKET_TYPE_VENDOR_SPECIFIC: hsa_packet_type_t = 0;
pub const HSA_PACKET_TYPE_INVALID: hsa_packet_type_t = 1;
pub const HSA_PACKET_TYPE_KERNEL_DISPATCH: hsa_packet_type_t = 2;
pub const HSA_PACKET_TYPE_BARRIER_AND: hsa_packet_type_t = 3;
pub const HSA_PACKET_TYPE_AGENT_DISPATCH: hsa_packet_type_t = 4;
pub const HSA_PACKET_TYPE_BARRIER_OR: hsa_packet_type_t = 5;
pub type hsa_packet_type_t = ::core::ffi::c_uint;
pub const HSA_FENCE_SCOPE_NONE: hsa_fence_scope_t = 0;
pub const HSA_FENCE_SCOPE_AGENT: hsa_fence_scope_t = 1;
pub const HSA_FENCE_SCOPE_SYSTEM: hsa_fence_scope_t = 2;
pub type hsa_fence_scope_t = ::core::ffi::c_uint;
pub const HSA_PACKET_HEADER_TYPE: hsa_packet_header_t = 0;
pub const HSA_PACKET_HEADER_BARRIER: hsa_packet_header_t = 8;
pub const HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE: hsa_packet_header_t = 9;
pub const HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE: hsa_packet_header_t = 9;
pub const HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE: hsa_packet_header_t = 11;
pub const HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE: hsa_packet_header_t = 11;
pub type hsa_packet_header_t = ::core::ffi::c_uint;
pub const HSA_PACKET_HEADER_WIDTH_TYPE: hsa_packet_header_width_t = 8;
pub const HSA_PACKET_HEADER_WIDTH_BARRIER: hsa_packet_header_width_t = 1;
pub const HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE: hsa_packet_header_width_t = 2;
pub const HSA_PACKET_HEADER_WIDTH_ACQUIRE_FENCE_SCOPE: hsa_packet_header_width_t = 2;
pub const HSA_PACKET_HEADER_WIDTH_SCRELEASE_FENCE_SCOPE: hsa_packet_header_width_t = 2;
pub const HSA_PACKET_HEADER_WIDTH_RELEASE_FENCE_SCOPE: hsa_packet_header_width_t = 2;
pub type hsa_packet_header_width_t = ::core::ffi::c_uint;
pub const HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS: hsa_kernel_dispatch_packet_setup_t = 0;
pub type hsa_kernel_dispatch_packet_setup_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_kernel_dispatch_packet_s {
    pub header: u16,
    pub setup: u16,
    pub workgroup_size_x: u16,
    pub workgroup_size_y: u16,
    pub workgroup_size_z: u16,
    pub reserved0: u16,
    pub grid_size_x: u32,
    pub grid_size_y: u32,
    pub grid_size_z: u32,
    pub private_segment_size: u32,
    pub group_segment_size: u32,
    pub kernel_object: u64,
    pub kernarg_address: *mut ::core::ffi::c_void,
    pub reserved2: u64,
    pub completion_signal: hsa_signal_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_kernel_dispatch_packet_s"]
        [::core::mem::size_of::<hsa_kernel_dispatch_packet_s>() - 64usize];
    ["Alignment of hsa_kernel_dispatch_packet_s"]
        [::core::mem::align_of::<hsa_kernel_dispatch_packet_s>() - 8usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::header"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, header) - 0usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::setup"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, setup) - 2usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::workgroup_size_x"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, workgroup_size_x) - 4usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::workgroup_size_y"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, workgroup_size_y) - 6usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::workgroup_size_z"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, workgroup_size_z) - 8usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::reserved0"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, reserved0) - 10usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::grid_size_x"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, grid_size_x) - 12usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::grid_size_y"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, grid_size_y) - 16usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::grid_size_z"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, grid_size_z) - 20usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::private_segment_size"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, private_segment_size) - 24usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::group_segment_size"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, group_segment_size) - 28usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::kernel_object"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, kernel_object) - 32usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::kernarg_address"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, kernarg_address) - 40usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::reserved2"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, reserved2) - 48usize];
    ["Offset of field: hsa_kernel_dispatch_packet_s::completion_signal"]
        [::core::mem::offset_of!(hsa_kernel_dispatch_packet_s, completion_signal) - 56usize];
};
pub type hsa_kernel_dispatch_packet_t = hsa_kernel_dispatch_packet_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_isa_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_isa_s"][::core::mem::size_of::<hsa_isa_s>() - 8usize];
    ["Alignment of hsa_isa_s"][::core::mem::align_of::<hsa_isa_s>() - 8usize];
    ["Offset of field: hsa_isa_s::handle"][::core::mem::offset_of!(hsa_isa_s, handle) - 0usize];
};
pub type hsa_isa_t = hsa_isa_s;
pub const HSA_ISA_INFO_NAME_LENGTH: hsa_isa_info_t = 0;
pub const HSA_ISA_INFO_NAME: hsa_isa_info_t = 1;
pub const HSA_ISA_INFO_CALL_CONVENTION_COUNT: hsa_isa_info_t = 2;
pub const HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE: hsa_isa_info_t = 3;
pub const HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT: hsa_isa_info_t = 4;
pub const HSA_ISA_INFO_MACHINE_MODELS: hsa_isa_info_t = 5;
pub const HSA_ISA_INFO_PROFILES: hsa_isa_info_t = 6;
pub const HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES: hsa_isa_info_t = 7;
pub const HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES: hsa_isa_info_t = 8;
pub const HSA_ISA_INFO_FAST_F16_OPERATION: hsa_isa_info_t = 9;
pub const HSA_ISA_INFO_WORKGROUP_MAX_DIM: hsa_isa_info_t = 12;
pub const HSA_ISA_INFO_WORKGROUP_MAX_SIZE: hsa_isa_info_t = 13;
pub const HSA_ISA_INFO_GRID_MAX_DIM: hsa_isa_info_t = 14;
pub const HSA_ISA_INFO_GRID_MAX_SIZE: hsa_isa_info_t = 16;
pub const HSA_ISA_INFO_FBARRIER_MAX_SIZE: hsa_isa_info_t = 17;
pub type hsa_isa_info_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_code_object_reader_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_code_object_reader_s"]
        [::core::mem::size_of::<hsa_code_object_reader_s>() - 8usize];
    ["Alignment of hsa_code_object_reader_s"]
        [::core::mem::align_of::<hsa_code_object_reader_s>() - 8usize];
    ["Offset of field: hsa_code_object_reader_s::handle"]
        [::core::mem::offset_of!(hsa_code_object_reader_s, handle) - 0usize];
};
pub type hsa_code_object_reader_t = hsa_code_object_reader_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_executable_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_executable_s"][::core::mem::size_of::<hsa_executable_s>() - 8usize];
    ["Alignment of hsa_executable_s"][::core::mem::align_of::<hsa_executable_s>() - 8usize];
    ["Offset of field: hsa_executable_s::handle"]
        [::core::mem::offset_of!(hsa_executable_s, handle) - 0usize];
};
pub type hsa_executable_t = hsa_executable_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_loaded_code_object_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_loaded_code_object_s"]
        [::core::mem::size_of::<hsa_loaded_code_object_s>() - 8usize];
    ["Alignment of hsa_loaded_code_object_s"]
        [::core::mem::align_of::<hsa_loaded_code_object_s>() - 8usize];
    ["Offset of field: hsa_loaded_code_object_s::handle"]
        [::core::mem::offset_of!(hsa_loaded_code_object_s, handle) - 0usize];
};
pub type hsa_loaded_code_object_t = hsa_loaded_code_object_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_executable_symbol_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_executable_symbol_s"][::core::mem::size_of::<hsa_executable_symbol_s>() - 8usize];
    ["Alignment of hsa_executable_symbol_s"]
        [::core::mem::align_of::<hsa_executable_symbol_s>() - 8usize];
    ["Offset of field: hsa_executable_symbol_s::handle"]
        [::core::mem::offset_of!(hsa_executable_symbol_s, handle) - 0usize];
};
pub type hsa_executable_symbol_t = hsa_executable_symbol_s;
pub const HSA_SYMBOL_KIND_VARIABLE: hsa_symbol_kind_t = 0;
pub const HSA_SYMBOL_KIND_KERNEL: hsa_symbol_kind_t = 1;
pub const HSA_SYMBOL_KIND_INDIRECT_FUNCTION: hsa_symbol_kind_t = 2;
pub type hsa_symbol_kind_t = ::core::ffi::c_uint;
pub const HSA_EXECUTABLE_SYMBOL_INFO_TYPE: hsa_executable_symbol_info_t = 0;
pub const HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH: hsa_executable_symbol_info_t = 1;
pub const HSA_EXECUTABLE_SYMBOL_INFO_NAME: hsa_executable_symbol_info_t = 2;
pub const HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH: hsa_executable_symbol_info_t = 3;
pub const HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME: hsa_executable_symbol_info_t = 4;
pub const HSA_EXECUTABLE_SYMBOL_INFO_AGENT: hsa_executable_symbol_info_t = 20;
pub const HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS: hsa_executable_symbol_info_t = 21;
pub const HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE: hsa_executable_symbol_info_t = 5;
pub const HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION: hsa_executable_symbol_info_t = 17;
pub const HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION: hsa_executable_symbol_info_t = 6;
pub const HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT: hsa_executable_symbol_info_t = 7;
pub const HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT: hsa_executable_symbol_info_t = 8;
pub const HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE: hsa_executable_symbol_info_t = 9;
pub const HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST: hsa_executable_symbol_info_t = 10;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT: hsa_executable_symbol_info_t = 22;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE: hsa_executable_symbol_info_t = 11;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
    hsa_executable_symbol_info_t = 12;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE: hsa_executable_symbol_info_t = 13;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE: hsa_executable_symbol_info_t = 14;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK: hsa_executable_symbol_info_t = 15;
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION: hsa_executable_symbol_info_t = 18;
pub const HSA_EXECUTABLE_SYMBOL_INFO_INDIRECT_FUNCTION_OBJECT: hsa_executable_symbol_info_t = 23;
pub const HSA_EXECUTABLE_SYMBOL_INFO_INDIRECT_FUNCTION_CALL_CONVENTION:
    hsa_executable_symbol_info_t = 16;
pub type hsa_executable_symbol_info_t = ::core::ffi::c_uint;
pub const HSA_STATUS_ERROR_INVALID_MEMORY_POOL: _bindgen_ty_3 = 40;
pub const HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: _bindgen_ty_3 = 41;
pub const HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: _bindgen_ty_3 = 42;
pub const HSA_STATUS_ERROR_MEMORY_FAULT: _bindgen_ty_3 = 43;
pub const HSA_STATUS_CU_MASK_REDUCED: _bindgen_ty_3 = 44;
pub type _bindgen_ty_3 = ::core::ffi::c_uint;
pub const HSA_AMD_AGENT_INFO_CHIP_ID: hsa_amd_agent_info_s = 40960;
pub const HSA_AMD_AGENT_INFO_CACHELINE_SIZE: hsa_amd_agent_info_s = 40961;
pub const HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: hsa_amd_agent_info_s = 40962;
pub const HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY: hsa_amd_agent_info_s = 40963;
pub const HSA_AMD_AGENT_INFO_DRIVER_NODE_ID: hsa_amd_agent_info_s = 40964;
pub const HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS: hsa_amd_agent_info_s = 40965;
pub const HSA_AMD_AGENT_INFO_BDFID: hsa_amd_agent_info_s = 40966;
pub const HSA_AMD_AGENT_INFO_MEMORY_WIDTH: hsa_amd_agent_info_s = 40967;
pub const HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY: hsa_amd_agent_info_s = 40968;
pub const HSA_AMD_AGENT_INFO_PRODUCT_NAME: hsa_amd_agent_info_s = 40969;
pub const HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU: hsa_amd_agent_info_s = 40970;
pub const HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU: hsa_amd_agent_info_s = 40971;
pub const HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES: hsa_amd_agent_info_s = 40972;
pub const HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE: hsa_amd_agent_info_s = 40973;
pub const HSA_AMD_AGENT_INFO_HDP_FLUSH: hsa_amd_agent_info_s = 40974;
pub const HSA_AMD_AGENT_INFO_DOMAIN: hsa_amd_agent_info_s = 40975;
pub const HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES: hsa_amd_agent_info_s = 40976;
pub const HSA_AMD_AGENT_INFO_UUID: hsa_amd_agent_info_s = 40977;
pub const HSA_AMD_AGENT_INFO_ASIC_REVISION: hsa_amd_agent_info_s = 40978;
pub const HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS: hsa_amd_agent_info_s = 40979;
pub const HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT: hsa_amd_agent_info_s = 40980;
pub type hsa_amd_agent_info_s = ::core::ffi::c_uint;
pub use self::hsa_amd_agent_info_s as hsa_amd_agent_info_t;
pub const HSA_AMD_SEGMENT_GLOBAL: hsa_amd_segment_t = 0;
pub const HSA_AMD_SEGMENT_READONLY: hsa_amd_segment_t = 1;
pub const HSA_AMD_SEGMENT_PRIVATE: hsa_amd_segment_t = 2;
pub const HSA_AMD_SEGMENT_GROUP: hsa_amd_segment_t = 3;
pub type hsa_amd_segment_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_amd_memory_pool_s {
    pub handle: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_memory_pool_s"][::core::mem::size_of::<hsa_amd_memory_pool_s>() - 8usize];
    ["Alignment of hsa_amd_memory_pool_s"]
        [::core::mem::align_of::<hsa_amd_memory_pool_s>() - 8usize];
    ["Offset of field: hsa_amd_memory_pool_s::handle"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_s, handle) - 0usize];
};
pub type hsa_amd_memory_pool_t = hsa_amd_memory_pool_s;
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT: hsa_amd_memory_pool_global_flag_s = 1;
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED: hsa_amd_memory_pool_global_flag_s = 2;
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED: hsa_amd_memory_pool_global_flag_s = 4;
pub type hsa_amd_memory_pool_global_flag_s = ::core::ffi::c_uint;
pub use self::hsa_amd_memory_pool_global_flag_s as hsa_amd_memory_pool_global_flag_t;
pub const HSA_AMD_MEMORY_POOL_INFO_SEGMENT: hsa_amd_memory_pool_info_t = 0;
pub const HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: hsa_amd_memory_pool_info_t = 1;
pub const HSA_AMD_MEMORY_POOL_INFO_SIZE: hsa_amd_memory_pool_info_t = 2;
pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: hsa_amd_memory_pool_info_t = 5;
pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE: hsa_amd_memory_pool_info_t = 6;
pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT: hsa_amd_memory_pool_info_t = 7;
pub const HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL: hsa_amd_memory_pool_info_t = 15;
pub const HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE: hsa_amd_memory_pool_info_t = 16;
pub type hsa_amd_memory_pool_info_t = ::core::ffi::c_uint;
pub const HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED: hsa_amd_memory_pool_access_t = 0;
pub const HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT: hsa_amd_memory_pool_access_t = 1;
pub const HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT: hsa_amd_memory_pool_access_t = 2;
pub type hsa_amd_memory_pool_access_t = ::core::ffi::c_uint;
pub const HSA_AMD_LINK_INFO_TYPE_HYPERTRANSPORT: hsa_amd_link_info_type_t = 0;
pub const HSA_AMD_LINK_INFO_TYPE_QPI: hsa_amd_link_info_type_t = 1;
pub const HSA_AMD_LINK_INFO_TYPE_PCIE: hsa_amd_link_info_type_t = 2;
pub const HSA_AMD_LINK_INFO_TYPE_INFINBAND: hsa_amd_link_info_type_t = 3;
pub const HSA_AMD_LINK_INFO_TYPE_XGMI: hsa_amd_link_info_type_t = 4;
pub type hsa_amd_link_info_type_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_amd_memory_pool_link_info_s {
    pub min_latency: u32,
    pub max_latency: u32,
    pub min_bandwidth: u32,
    pub max_bandwidth: u32,
    pub atomic_support_32bit: bool,
    pub atomic_support_64bit: bool,
    pub coherent_support: bool,
    pub link_type: hsa_amd_link_info_type_t,
    pub numa_distance: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_memory_pool_link_info_s"]
        [::core::mem::size_of::<hsa_amd_memory_pool_link_info_s>() - 28usize];
    ["Alignment of hsa_amd_memory_pool_link_info_s"]
        [::core::mem::align_of::<hsa_amd_memory_pool_link_info_s>() - 4usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::min_latency"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, min_latency) - 0usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::max_latency"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, max_latency) - 4usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::min_bandwidth"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, min_bandwidth) - 8usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::max_bandwidth"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, max_bandwidth) - 12usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::atomic_support_32bit"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, atomic_support_32bit) - 16usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::atomic_support_64bit"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, atomic_support_64bit) - 17usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::coherent_support"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, coherent_support) - 18usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::link_type"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, link_type) - 20usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::numa_distance"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, numa_distance) - 24usize];
};
pub type hsa_amd_memory_pool_link_info_t = hsa_amd_memory_pool_link_info_s;
pub const HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS: hsa_amd_agent_memory_pool_info_t = 0;
pub const HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS: hsa_amd_agent_memory_pool_info_t = 1;
pub const HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO: hsa_amd_agent_memory_pool_info_t = 2;
pub type hsa_amd_agent_memory_pool_info_t = ::core::ffi::c_uint;
pub const HSA_AMD_GPU_MEMORY_FAULT_EVENT: hsa_amd_event_type_s = 0;
pub type hsa_amd_event_type_s = ::core::ffi::c_uint;
pub use self::hsa_amd_event_type_s as hsa_amd_event_type_t;
pub const HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT: hsa_amd_memory_fault_reason_t = 1;
pub const HSA_AMD_MEMORY_FAULT_READ_ONLY: hsa_amd_memory_fault_reason_t = 2;
pub const HSA_AMD_MEMORY_FAULT_NX: hsa_amd_memory_fault_reason_t = 4;
pub const HSA_AMD_MEMORY_FAULT_HOST_ONLY: hsa_amd_memory_fault_reason_t = 8;
pub const HSA_AMD_MEMORY_FAULT_DRAMECC: hsa_amd_memory_fault_reason_t = 16;
pub const HSA_AMD_MEMORY_FAULT_IMPRECISE: hsa_amd_memory_fault_reason_t = 32;
pub const HSA_AMD_MEMORY_FAULT_SRAMECC: hsa_amd_memory_fault_reason_t = 64;
pub const HSA_AMD_MEMORY_FAULT_HANG: hsa_amd_memory_fault_reason_t = -2147483648;
pub type hsa_amd_memory_fault_reason_t = ::core::ffi::c_int;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hsa_amd_gpu_memory_fault_info_s {
    pub agent: hsa_agent_t,
    pub virtual_address: u64,
    pub fault_reason_mask: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_gpu_memory_fault_info_s"]
        [::core::mem::size_of::<hsa_amd_gpu_memory_fault_info_s>() - 24usize];
    ["Alignment of hsa_amd_gpu_memory_fault_info_s"]
        [::core::mem::align_of::<hsa_amd_gpu_memory_fault_info_s>() - 8usize];
    ["Offset of field: hsa_amd_gpu_memory_fault_info_s::agent"]
        [::core::mem::offset_of!(hsa_amd_gpu_memory_fault_info_s, agent) - 0usize];
    ["Offset of field: hsa_amd_gpu_memory_fault_info_s::virtual_address"]
        [::core::mem::offset_of!(hsa_amd_gpu_memory_fault_info_s, virtual_address) - 8usize];
    ["Offset of field: hsa_amd_gpu_memory_fault_info_s::fault_reason_mask"]
        [::core::mem::offset_of!(hsa_amd_gpu_memory_fault_info_s, fault_reason_mask) - 16usize];
};
pub type hsa_amd_gpu_memory_fault_info_t = hsa_amd_gpu_memory_fault_info_s;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct hsa_amd_event_s {
    pub event_type: hsa_amd_event_type_t,
    pub __bindgen_anon_1: hsa_amd_event_s__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union hsa_amd_event_s__bindgen_ty_1 {
    pub memory_fault: hsa_amd_gpu_memory_fault_info_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_event_s__bindgen_ty_1"]
        [::core::mem::size_of::<hsa_amd_event_s__bindgen_ty_1>() - 24usize];
    ["Alignment of hsa_amd_event_s__bindgen_ty_1"]
        [::core::mem::align_of::<hsa_amd_event_s__bindgen_ty_1>() - 8usize];
    ["Offset of field: hsa_amd_event_s__bindgen_ty_1::memory_fault"]
        [::core::mem::offset_of!(hsa_amd_event_s__bindgen_ty_1, memory_fault) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_event_s"][::core::mem::size_of::<hsa_amd_event_s>() - 32usize];
    ["Alignment of hsa_amd_event_s"][::core::mem::align_of::<hsa_amd_event_s>() - 8usize];
    ["Offset of field: hsa_amd_event_s::event_type"]
        [::core::mem::offset_of!(hsa_amd_event_s, event_type) - 0usize];
};
pub type hsa_amd_event_t = hsa_amd_event_s;
pub type hsa_amd_system_event_callback_t = ::core::option::Option<
    unsafe extern "C" fn(
        event: *const hsa_amd_event_t,
        data: *mut ::core::ffi::c_void,
    ) -> hsa_status_t,
>;

crate::api! {
    fn hsa_status_string(
        status: hsa_status_t,
        status_string: *mut *const ::core::ffi::c_char,
    ) -> hsa_status_t;
    fn hsa_init() -> hsa_status_t;
    fn hsa_shut_down() -> hsa_status_t;
    fn hsa_system_get_info(
        attribute: hsa_system_info_t,
        value: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_agent_get_info(
        agent: hsa_agent_t,
        attribute: hsa_agent_info_t,
        value: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_iterate_agents(
        callback: ::core::option::Option<
            unsafe extern "C" fn(
                agent: hsa_agent_t,
                data: *mut ::core::ffi::c_void,
            ) -> hsa_status_t,
        >,
        data: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_signal_create(
        initial_value: hsa_signal_value_t,
        num_consumers: u32,
        consumers: *const hsa_agent_t,
        signal: *mut hsa_signal_t,
    ) -> hsa_status_t;
    fn hsa_signal_destroy(signal: hsa_signal_t) -> hsa_status_t;
    fn hsa_signal_load_scacquire(signal: hsa_signal_t) -> hsa_signal_value_t;
    fn hsa_signal_store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    fn hsa_signal_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    fn hsa_signal_wait_scacquire(
        signal: hsa_signal_t,
        condition: hsa_signal_condition_t,
        compare_value: hsa_signal_value_t,
        timeout_hint: u64,
        wait_state_hint: hsa_wait_state_t,
    ) -> hsa_signal_value_t;
    fn hsa_queue_create(
        agent: hsa_agent_t,
        size: u32,
        type_: hsa_queue_type32_t,
        callback: ::core::option::Option<
            unsafe extern "C" fn(
                status: hsa_status_t,
                source: *mut hsa_queue_t,
                data: *mut ::core::ffi::c_void,
            ),
        >,
        data: *mut ::core::ffi::c_void,
        private_segment_size: u32,
        group_segment_size: u32,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t;
    fn hsa_queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t;
    fn hsa_queue_load_read_index_scacquire(queue: *const hsa_queue_t) -> u64;
    fn hsa_queue_add_write_index_relaxed(
        queue: *const hsa_queue_t,
        value: u64,
    ) -> u64;
    fn hsa_agent_iterate_isas(
        agent: hsa_agent_t,
        callback: ::core::option::Option<
            unsafe extern "C" fn(
                isa: hsa_isa_t,
                data: *mut ::core::ffi::c_void,
            ) -> hsa_status_t,
        >,
        data: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_isa_get_info_alt(
        isa: hsa_isa_t,
        attribute: hsa_isa_info_t,
        value: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_code_object_reader_create_from_memory(
        code_object: *const ::core::ffi::c_void,
        size: usize,
        code_object_reader: *mut hsa_code_object_reader_t,
    ) -> hsa_status_t;
    fn hsa_code_object_reader_destroy(
        code_object_reader: hsa_code_object_reader_t,
    ) -> hsa_status_t;
    fn hsa_executable_create_alt(
        profile: hsa_profile_t,
        default_float_rounding_mode: hsa_default_float_rounding_mode_t,
        options: *const ::core::ffi::c_char,
        executable: *mut hsa_executable_t,
    ) -> hsa_status_t;
    fn hsa_executable_destroy(executable: hsa_executable_t) -> hsa_status_t;
    fn hsa_executable_load_agent_code_object(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        code_object_reader: hsa_code_object_reader_t,
        options: *const ::core::ffi::c_char,
        loaded_code_object: *mut hsa_loaded_code_object_t,
    ) -> hsa_status_t;
    fn hsa_executable_freeze(
        executable: hsa_executable_t,
        options: *const ::core::ffi::c_char,
    ) -> hsa_status_t;
    fn hsa_executable_validate(
        executable: hsa_executable_t,
        result: *mut u32,
    ) -> hsa_status_t;
    fn hsa_executable_get_symbol_by_name(
        executable: hsa_executable_t,
        symbol_name: *const ::core::ffi::c_char,
        agent: *const hsa_agent_t,
        symbol: *mut hsa_executable_symbol_t,
    ) -> hsa_status_t;
    fn hsa_executable_symbol_get_info(
        executable_symbol: hsa_executable_symbol_t,
        attribute: hsa_executable_symbol_info_t,
        value: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_amd_memory_pool_get_info(
        memory_pool: hsa_amd_memory_pool_t,
        attribute: hsa_amd_memory_pool_info_t,
        value: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_amd_agent_iterate_memory_pools(
        agent: hsa_agent_t,
        callback: ::core::option::Option<
            unsafe extern "C" fn(
                memory_pool: hsa_amd_memory_pool_t,
                data: *mut ::core::ffi::c_void,
            ) -> hsa_status_t,
        >,
        data: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_amd_memory_pool_allocate(
        memory_pool: hsa_amd_memory_pool_t,
        size: usize,
        flags: u32,
        ptr: *mut *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_amd_memory_pool_free(ptr: *mut ::core::ffi::c_void) -> hsa_status_t;
    fn hsa_amd_memory_async_copy(
        dst: *mut ::core::ffi::c_void,
        dst_agent: hsa_agent_t,
        src: *const ::core::ffi::c_void,
        src_agent: hsa_agent_t,
        size: usize,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
        completion_signal: hsa_signal_t,
    ) -> hsa_status_t;
    fn hsa_amd_agent_memory_pool_get_info(
        agent: hsa_agent_t,
        memory_pool: hsa_amd_memory_pool_t,
        attribute: hsa_amd_agent_memory_pool_info_t,
        value: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_amd_agents_allow_access(
        num_agents: u32,
        agents: *const hsa_agent_t,
        flags: *const u32,
        ptr: *const ::core::ffi::c_void,
    ) -> hsa_status_t;
    fn hsa_amd_memory_fill(
        ptr: *mut ::core::ffi::c_void,
        value: u32,
        count: usize,
    ) -> hsa_status_t;
    fn hsa_amd_register_system_event_handler(
        callback: hsa_amd_system_event_callback_t,
        data: *mut ::core::ffi::c_void,
    ) -> hsa_status_t;
}
