//! One C function for each function of the driver API that `cust` and the loader use.
//!
//! The parameter names and types are those of `cuda.h`; `cust_raw` holds the same declarations, and
//! a constant per function makes the compiler compare the two.
#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_char, c_void};

#[allow(clippy::wildcard_imports)] // the fifty types that the signatures below are made of
use cust_raw::*;

use crate::driver::Slot;
use crate::errors::settle;

macro_rules! trampolines {
    ($(fn $name:ident($($parameter:ident: $kind:ty),* $(,)?);)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($parameter: $kind),*) -> u32 {
                static SLOT: Slot = Slot::new(concat!(stringify!($name), "\0"));
                match SLOT.address() {
                    Ok(address) => {
                        // SAFETY: `address` is the driver's function of this name. Its signature
                        // is the one in `cuda.h`, which NVIDIA keeps for a given name (a changed
                        // one gets a new suffix), and which the constant below compares with
                        // cust_raw's. The result is taken as the C `int`-sized enum it is, never
                        // as a Rust enum, so unknown codes are harmless.
                        let function = unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($kind),*) -> u32,
                            >(address)
                        };
                        // SAFETY: the caller keeps the contract of the driver's function, which
                        // is the whole contract of this one.
                        settle(unsafe { function($($parameter),*) })
                    }
                    Err(code) => settle(code),
                }
            }
            const _: unsafe extern "C" fn($($kind),*) -> CUresult = cust_raw::$name;
        )*

        /// The functions above. `#[used]`, so that a program that links this crate links all of
        /// them, whatever the order in which its linker reads libraries.
        #[used]
        pub(crate) static ALL: [Trampoline; [$(stringify!($name)),*].len()] = [$(Trampoline {
            name: concat!(stringify!($name), "\0"),
            code: $name as *const c_void,
        }),*];
    };
}

pub(crate) struct Trampoline {
    /// With a NUL at its end.
    pub(crate) name: &'static str,
    #[allow(dead_code)] // there to be linked
    code: *const c_void,
}

// SAFETY: `code` is the address of a function and never changes.
unsafe impl Sync for Trampoline {}

trampolines! {
    fn cuArray3DCreate_v2(p_handle: *mut CUarray, p_allocate_array: *const CUDA_ARRAY3D_DESCRIPTOR);
    fn cuArray3DGetDescriptor_v2(
        p_array_descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, h_array: CUarray,
    );
    fn cuArrayDestroy(h_array: CUarray);
    fn cuCtxCreate_v2(pctx: *mut CUcontext, flags: u32, dev: CUdevice);
    fn cuCtxDestroy_v2(ctx: CUcontext);
    fn cuCtxGetApiVersion(ctx: CUcontext, version: *mut u32);
    fn cuCtxGetCacheConfig(pconfig: *mut CUfunc_cache);
    fn cuCtxGetCurrent(pctx: *mut CUcontext);
    fn cuCtxGetDevice(device: *mut CUdevice);
    fn cuCtxGetFlags(flags: *mut u32);
    fn cuCtxGetLimit(pvalue: *mut usize, limit: CUlimit);
    fn cuCtxGetSharedMemConfig(p_config: *mut CUsharedconfig);
    fn cuCtxGetStreamPriorityRange(least_priority: *mut i32, greatest_priority: *mut i32);
    fn cuCtxPopCurrent_v2(pctx: *mut CUcontext);
    fn cuCtxPushCurrent_v2(ctx: CUcontext);
    fn cuCtxSetCacheConfig(config: CUfunc_cache);
    fn cuCtxSetCurrent(ctx: CUcontext);
    fn cuCtxSetLimit(limit: CUlimit, value: usize);
    fn cuCtxSetSharedMemConfig(config: CUsharedconfig);
    fn cuCtxSynchronize();
    fn cuDestroyExternalMemory(ext_mem: CUexternalMemory);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: i32);
    fn cuDeviceGetAttribute(pi: *mut i32, attrib: CUdevice_attribute, dev: CUdevice);
    fn cuDeviceGetCount(count: *mut i32);
    fn cuDeviceGetName(name: *mut c_char, len: i32, dev: CUdevice);
    fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice);
    fn cuDevicePrimaryCtxReset_v2(dev: CUdevice);
    fn cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice);
    fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: u32);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    fn cuDriverGetVersion(driver_version: *mut i32);
    fn cuEventCreate(ph_event: *mut CUevent, flags: u32);
    fn cuEventDestroy_v2(h_event: CUevent);
    fn cuEventElapsedTime(p_milliseconds: *mut f32, h_start: CUevent, h_end: CUevent);
    fn cuEventQuery(h_event: CUevent);
    fn cuEventRecord(h_event: CUevent, h_stream: CUstream);
    fn cuEventSynchronize(h_event: CUevent);
    fn cuExternalMemoryGetMappedBuffer(
        dev_ptr: *mut CUdeviceptr, ext_mem: CUexternalMemory, buffer_desc: *const
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    );
    fn cuFuncGetAttribute(pi: *mut i32, attrib: CUfunction_attribute, hfunc: CUfunction);
    fn cuFuncSetCacheConfig(hfunc: CUfunction, config: CUfunc_cache);
    fn cuFuncSetSharedMemConfig(hfunc: CUfunction, config: CUsharedconfig);
    fn cuGraphAddKernelNode(
        ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, node_params: *const CUDA_KERNEL_NODE_PARAMS,
    );
    fn cuGraphCreate(ph_graph: *mut CUgraph, flags: u32);
    fn cuGraphDebugDotPrint(h_graph: CUgraph, path: *const c_char, flags: u32);
    fn cuGraphDestroy(h_graph: CUgraph);
    fn cuGraphGetEdges(
        h_graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, num_edges: *mut usize,
    );
    fn cuGraphGetNodes(h_graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize);
    fn cuGraphKernelNodeGetParams(h_node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphNodeGetType(h_node: CUgraphNode, kind: *mut CUgraphNodeType);
    fn cuImportExternalMemory(
        ext_mem_out: *mut CUexternalMemory, mem_handle_desc: *const
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    );
    fn cuInit(flags: u32);
    fn cuLaunchHostFunc(h_stream: CUstream, function: CUhostFn, user_data: *mut c_void);
    fn cuLaunchKernel(
        f: CUfunction, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32,
        block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, h_stream: CUstream,
        kernel_params: *mut *mut c_void, extra: *mut *mut c_void,
    );
    fn cuLinkAddData_v2(
        state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const
        c_char, num_options: u32, options: *mut CUjit_option, option_values: *mut *mut c_void,
    );
    fn cuLinkComplete(state: CUlinkState, cubin_out: *mut *mut c_void, size_out: *mut usize);
    fn cuLinkCreate_v2(
        num_options: u32, options: *mut CUjit_option, option_values: *mut *mut c_void, state_out:
        *mut CUlinkState,
    );
    fn cuLinkDestroy(state: CUlinkState);
    fn cuMemAdvise(dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice);
    fn cuMemAllocAsync(dptr: *mut CUdeviceptr, bytesize: usize, h_stream: CUstream);
    fn cuMemAllocHost_v2(pp: *mut *mut c_void, bytesize: usize);
    fn cuMemAllocManaged(dptr: *mut CUdeviceptr, bytesize: usize, flags: u32);
    fn cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize);
    fn cuMemFreeAsync(dptr: CUdeviceptr, h_stream: CUstream);
    fn cuMemFreeHost(p: *mut c_void);
    fn cuMemFree_v2(dptr: CUdeviceptr);
    fn cuMemGetAddressRange_v2(pbase: *mut CUdeviceptr, psize: *mut usize, dptr: CUdeviceptr);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: u32);
    fn cuMemHostGetDevicePointer_v2(pdptr: *mut CUdeviceptr, p: *mut c_void, flags: u32);
    fn cuMemPrefetchAsync(
        dev_ptr: CUdeviceptr, count: usize, dst_device: CUdevice, h_stream: CUstream,
    );
    fn cuMemcpy2D_v2(p_copy: *const CUDA_MEMCPY2D);
    fn cuMemcpyAtoH_v2(
        dst_host: *mut c_void, src_array: CUarray, src_offset: usize, byte_count: usize,
    );
    fn cuMemcpyDtoDAsync_v2(
        dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream,
    );
    fn cuMemcpyDtoD_v2(dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize);
    fn cuMemcpyDtoHAsync_v2(
        dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream,
    );
    fn cuMemcpyDtoH_v2(dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize);
    fn cuMemcpyHtoA_v2(
        dst_array: CUarray, dst_offset: usize, src_host: *const c_void, byte_count: usize,
    );
    fn cuMemcpyHtoDAsync_v2(
        dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize, h_stream: CUstream,
    );
    fn cuMemcpyHtoD_v2(dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize);
    fn cuMemsetD16Async(dst_device: CUdeviceptr, us: u16, n: usize, h_stream: CUstream);
    fn cuMemsetD16_v2(dst_device: CUdeviceptr, us: u16, n: usize);
    fn cuMemsetD32Async(dst_device: CUdeviceptr, ui: u32, n: usize, h_stream: CUstream);
    fn cuMemsetD32_v2(dst_device: CUdeviceptr, ui: u32, n: usize);
    fn cuMemsetD8Async(dst_device: CUdeviceptr, uc: u8, n: usize, h_stream: CUstream);
    fn cuMemsetD8_v2(dst_device: CUdeviceptr, uc: u8, n: usize);
    fn cuModuleGetFunction(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char);
    fn cuModuleGetGlobal_v2(
        dptr: *mut CUdeviceptr, bytes: *mut usize, hmod: CUmodule, name: *const c_char,
    );
    fn cuModuleLoad(module: *mut CUmodule, fname: *const c_char);
    fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    fn cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, num_options: u32, options: *mut CUjit_option,
        option_values: *mut *mut c_void,
    );
    fn cuModuleUnload(hmod: CUmodule);
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        dynamic_smem_size: *mut usize, func: CUfunction, num_blocks: i32, block_size: i32,
    );
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        num_blocks: *mut i32, func: CUfunction, block_size: i32, dynamic_smem_size: usize,
    );
    fn cuOccupancyMaxPotentialBlockSize(
        min_grid_size: *mut i32, block_size: *mut i32, func: CUfunction,
        block_size_to_dynamic_smem_size: CUoccupancyB2DSize, dynamic_smem_size: usize,
        block_size_limit: i32,
    );
    fn cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr);
    fn cuStreamCreate(ph_stream: *mut CUstream, flags: u32);
    fn cuStreamCreateWithPriority(ph_stream: *mut CUstream, flags: u32, priority: i32);
    fn cuStreamDestroy_v2(h_stream: CUstream);
    fn cuStreamGetFlags(h_stream: CUstream, flags: *mut u32);
    fn cuStreamGetPriority(h_stream: CUstream, priority: *mut i32);
    fn cuStreamQuery(h_stream: CUstream);
    fn cuStreamSynchronize(h_stream: CUstream);
    fn cuStreamWaitEvent(h_stream: CUstream, h_event: CUevent, flags: u32);
    fn cuSurfObjectCreate(p_surf_object: *mut CUsurfObject, p_res_desc: *const CUDA_RESOURCE_DESC);
    fn cuSurfObjectDestroy(surf_object: CUsurfObject);
    fn cuSurfObjectGetResourceDesc(p_res_desc: *mut CUDA_RESOURCE_DESC, surf_object: CUsurfObject);
    fn cuTexObjectCreate(
        p_tex_object: *mut CUtexObject, p_res_desc: *const CUDA_RESOURCE_DESC, p_tex_desc: *const
        CUDA_TEXTURE_DESC, p_res_view_desc: *const CUDA_RESOURCE_VIEW_DESC,
    );
    fn cuTexObjectDestroy(tex_object: CUtexObject);
    fn cuTexObjectGetResourceDesc(p_res_desc: *mut CUDA_RESOURCE_DESC, tex_object: CUtexObject);
}

/// As the driver's; `error` is a plain number here, so that no caller can pass a value that a Rust
/// enum does not have. Answers without a driver too: `cust` formats its errors with this function
/// and would panic otherwise.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: u32, text: *mut *const c_char) -> u32 {
    if text.is_null() {
        return settle(cudaError_enum::CUDA_ERROR_INVALID_VALUE as u32);
    }
    // SAFETY: not null, and the caller passes a place for a pointer, as for the driver's.
    unsafe { text.write(crate::errors::explanation(error).as_ptr()) };
    0
}

/// As the driver's; answers without a driver too.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: u32, text: *mut *const c_char) -> u32 {
    if text.is_null() {
        return settle(cudaError_enum::CUDA_ERROR_INVALID_VALUE as u32);
    }
    // SAFETY: not null, and the caller passes a place for a pointer, as for the driver's.
    unsafe { text.write(crate::errors::name(error).as_ptr()) };
    0
}
