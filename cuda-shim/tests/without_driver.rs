//! What a program that uses `cust` sees. Passes with and without a driver.

use cust::error::CudaError;

#[test]
fn every_function_is_there_or_none() {
    match cuda_shim::available() {
        Ok(()) => assert_eq!(cuda_shim::missing(), Vec::<&str>::new()),
        Err(reason) => {
            assert!(cuda_shim::missing().len() > 100);
            let sentence = reason.to_string();
            assert!(
                sentence.starts_with("no NVIDIA driver: libcuda.so.1 could not be loaded ("),
                "{sentence}"
            );
            assert!(!sentence.contains('\n'), "{sentence}");
        }
    }
}

#[test]
fn cust_gets_an_error_instead_of_a_crash() {
    if cuda_shim::available().is_ok() {
        eprintln!("left out: this machine has an NVIDIA driver");
        return;
    }
    assert_eq!(
        cust::init(cust::CudaFlags::empty()),
        Err(CudaError::NoDevice)
    );
    assert_eq!(cuda_shim::last_raw_error(), 100);
    assert_eq!(
        cust::device::Device::num_devices(),
        Err(CudaError::NoDevice)
    );
    assert_eq!(cust::memory::mem_get_info(), Err(CudaError::NoDevice));
    assert!(cust::module::Module::from_ptx("", &[]).is_err());
    assert!(cust::stream::Stream::new(cust::stream::StreamFlags::DEFAULT, None).is_err());
}

#[test]
fn cust_can_format_its_errors() {
    assert!(
        CudaError::NoDevice
            .to_string()
            .contains("no CUDA-capable device")
    );
    for error in [
        CudaError::LaunchFailed,
        CudaError::UnknownError,
        CudaError::NotFound,
    ] {
        assert!(!error.to_string().is_empty());
    }
}
