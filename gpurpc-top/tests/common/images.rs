//! The images that `cargo xtask images` builds, and tests that are left out without them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The image at `path` below the folder of images, `TARGET/NAME` or `TARGET/compact/NAME`; `None`,
/// said aloud, if it was not built.
///
/// # Panics
/// If it was not built and `GPURPC_REQUIRE_IMAGES=1`.
pub fn image(path: &str) -> Option<PathBuf> {
    let images = std::env::var_os("GPURPC_IMAGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/images"),
        PathBuf::from,
    );
    let image = images.join(path);
    if image.exists() {
        return Some(image);
    }
    let missing = format!(
        "there is no {} (`cargo xtask images` builds it)",
        image.display()
    );
    let required = std::env::var_os("GPURPC_REQUIRE_IMAGES").is_some_and(|value| value == "1");
    assert!(!required, "{missing}");
    left_out(&missing);
    None
}

/// Says which test is left out, and why.
pub fn left_out(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test} left out: {reason}");
}
