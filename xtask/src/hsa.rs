//! Regenerates `hsa-sys/src/bindings.rs` from the headers of the HSA runtime.
//!
//! What is kept is named here: the functions, and with them every type they use; the constants by
//! their prefixes. bindgen declares functions as symbols to link; the runtime is loaded when a
//! program asks for it, so the declarations become one table (`hsa_sys::api!`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bindgen::{Builder, Formatter};

use crate::process;
use crate::workspace::Workspace;

/// Where distributions put the headers: Debian's `libhsa-runtime-dev`, AMD's own packages.
const FOLDERS: [&str; 3] = ["/usr/include", "/opt/rocm/include", "/usr/local/include"];

/// The functions of the table.
const FUNCTIONS: [&str; 36] = [
    "hsa_init",
    "hsa_shut_down",
    "hsa_status_string",
    "hsa_system_get_info",
    "hsa_iterate_agents",
    "hsa_agent_get_info",
    "hsa_agent_iterate_isas",
    "hsa_isa_get_info_alt",
    "hsa_queue_create",
    "hsa_queue_destroy",
    "hsa_queue_add_write_index_relaxed",
    "hsa_queue_load_read_index_scacquire",
    "hsa_signal_create",
    "hsa_signal_destroy",
    "hsa_signal_load_scacquire",
    "hsa_signal_store_relaxed",
    "hsa_signal_store_screlease",
    "hsa_signal_wait_scacquire",
    "hsa_code_object_reader_create_from_memory",
    "hsa_code_object_reader_destroy",
    "hsa_executable_create_alt",
    "hsa_executable_load_agent_code_object",
    "hsa_executable_freeze",
    "hsa_executable_validate",
    "hsa_executable_get_symbol_by_name",
    "hsa_executable_destroy",
    "hsa_executable_symbol_get_info",
    "hsa_amd_agent_iterate_memory_pools",
    "hsa_amd_memory_pool_get_info",
    "hsa_amd_memory_pool_allocate",
    "hsa_amd_memory_pool_free",
    "hsa_amd_agent_memory_pool_get_info",
    "hsa_amd_agents_allow_access",
    "hsa_amd_memory_fill",
    "hsa_amd_memory_async_copy",
    "hsa_amd_register_system_event_handler",
];

/// Types that no kept function names: what is written into memory, or behind a `void *`.
const TYPES: [&str; 17] = [
    "hsa_queue_type_t",
    "hsa_amd_memory_pool_access_t",
    "hsa_amd_memory_pool_link_info_t",
    "hsa_kernel_dispatch_packet_t",
    "hsa_packet_type_t",
    "hsa_packet_header_t",
    "hsa_packet_header_width_t",
    "hsa_fence_scope_t",
    "hsa_kernel_dispatch_packet_setup_t",
    "hsa_device_type_t",
    "hsa_agent_feature_t",
    "hsa_symbol_kind_t",
    "hsa_isa_info_t",
    "hsa_amd_agent_info_t",
    "hsa_amd_memory_fault_reason_t",
    "hsa_amd_memory_pool_global_flag_t",
    "hsa_amd_segment_t",
];

/// What stands at the top of the file.
const HEAD: &str = "\
// Made from the headers of the HSA runtime by `cargo xtask hsa-sys`: change xtask/src/hsa.rs instead.\n\n";

/// Writes the bindings. `include` is the folder that holds `hsa/hsa.h`; else it is looked for.
pub(crate) fn generate(workspace: &Workspace, include: Option<&Path>) -> Result<()> {
    let include = find(include)?;
    let text = table(&bind(&include)?)?;
    let file = workspace.root.join("hsa-sys/src/bindings.rs");
    process::write_if_changed(&file, format!("{HEAD}{text}").as_bytes())?;
    process::run(workspace.cargo().args(["fmt", "--package", "hsa-sys"]))?;
    println!("{}: {} lines", file.display(), text.lines().count());
    Ok(())
}

fn find(include: Option<&Path>) -> Result<PathBuf> {
    let folders = include.map_or_else(
        || FOLDERS.iter().map(PathBuf::from).collect(),
        |own| vec![own.to_path_buf()],
    );
    let found = folders
        .iter()
        .find(|folder| folder.join("hsa/hsa.h").exists());
    found.cloned().with_context(|| {
        format!(
            "there is no hsa/hsa.h in {folders:?}: install libhsa-runtime-dev (Debian) or \
             hsa-rocr-dev (AMD), or name the folder with --include"
        )
    })
}

fn bind(include: &Path) -> Result<String> {
    let mut builder = Builder::default()
        .header_contents(
            "all.h",
            "#include <hsa/hsa.h>\n#include <hsa/hsa_ext_amd.h>\n",
        )
        .clang_arg(format!("-I{}", include.display()))
        .formatter(Formatter::Prettyplease)
        .allowlist_recursively(true)
        .prepend_enum_name(false)
        .use_core()
        .derive_default(false)
        .disable_header_comment()
        .generate_comments(false);
    for name in FUNCTIONS {
        builder = builder.allowlist_function(name);
    }
    // Unnamed enumerations of AMD's extension.
    builder = builder.allowlist_var("HSA_STATUS_ERROR_.*");
    for name in TYPES {
        builder = builder.allowlist_type(name);
    }
    let bindings = builder
        .generate()
        .context("bindgen cannot read the headers (it needs libclang: LIBCLANG_PATH says where)")?;
    Ok(bindings.to_string())
}

/// Turns the declarations of functions into the table.
fn table(bindings: &str) -> Result<String> {
    let mut types = String::new();
    let mut functions = String::new();
    let mut count = 0;
    let mut inside = false;
    for line in bindings.lines() {
        match line {
            "unsafe extern \"C\" {" | "extern \"C\" {" => inside = true,
            "}" if inside => inside = false,
            _ if inside => {
                let declaration = line.replacen("pub fn ", "fn ", 1);
                count += usize::from(declaration != line);
                writeln!(functions, "{declaration}")?;
            }
            _ => writeln!(types, "{line}")?,
        }
    }
    if count != FUNCTIONS.len() {
        bail!(
            "the headers declare {count} of the {} functions that the table has",
            FUNCTIONS.len()
        );
    }
    Ok(format!("{types}\ncrate::api! {{\n{functions}}}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_lacks_functions_is_refused() {
        let said = table("unsafe extern \"C\" {\n    pub fn hsa_init() -> hsa_status_t;\n}\n");
        assert!(said.is_err_and(|error| error.to_string().contains("declare 1 of")));
    }
}
