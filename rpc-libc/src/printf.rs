//! C's formatted output.

use std::sync::Arc;

use rpc_server::{Output, Table};

pub(crate) fn install(_table: &mut Table, _output: &Arc<dyn Output>) {}
