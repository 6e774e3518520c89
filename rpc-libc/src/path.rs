//! Paths from the device: `remove` and `rename`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rpc_server::{Conversation, Failure, Flow, Messages, Table};
use rpc_types::Opcode;

/// Bytes of the longest path with its NUL, as Linux has it.
const PATH_MAX: usize = 4096;

/// The text in a message that ends with a NUL, up to its first one.
pub(crate) fn text(message: &[u8]) -> Option<OsString> {
    let text = message.strip_suffix(&[0])?;
    let end = text.iter().position(|byte| *byte == 0);
    let text = &text[..end.unwrap_or(text.len())];
    Some(OsString::from_vec(text.to_vec()))
}

/// As [`text`], if it is not too long for a path.
pub(crate) fn path(message: &[u8]) -> Option<PathBuf> {
    text(message)
        .filter(|text| text.len() < PATH_MAX)
        .map(PathBuf::from)
}

pub(crate) fn install(table: &mut Table) {
    table.conversation(Opcode::REMOVE, "remove", |mut conversation| async move {
        let paths = conversation.recv_n_lossy(u64::MAX).await?;
        each(&mut conversation, [&paths], |[path]| remove(path)).await
    });
    table.conversation(Opcode::RENAME, "rename", |mut conversation| async move {
        let old = conversation.recv_n_lossy(u64::MAX).await?;
        let new = conversation.recv_n_lossy(u64::MAX).await?;
        let rename = |[old, new]: &[PathBuf; 2]| fs::rename(old, new);
        each(&mut conversation, [&old, &new], rename).await
    });
}

/// C's `remove`: a file, or an empty folder.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        // Linux says the former, POSIX has the latter.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::IsADirectory | ErrorKind::PermissionDenied
            ) =>
        {
            fs::remove_dir(path).map_err(|_| error)
        }
        result => result,
    }
}

/// Does `work` with the paths of each lane, lowest first: 0, or -1.
async fn each<const N: usize>(
    conversation: &mut Conversation,
    messages: [&Messages; N],
    work: impl Fn(&[PathBuf; N]) -> io::Result<()> + Send + 'static,
) -> Result<Flow, Failure> {
    let paths = conversation.lanes().map(|lane| {
        let all = messages.map(|messages| path(messages.of(lane)));
        all.iter()
            .all(Option::is_some)
            .then(|| all.map(Option::unwrap_or_default))
    });
    let paths: Vec<_> = paths.collect();
    let work = move || {
        let done = |paths: &[PathBuf; N]| work(paths).is_ok();
        let done = |paths: &Option<_>| paths.as_ref().is_some_and(done);
        paths.iter().map(done).collect::<Vec<_>>()
    };
    let mut done = conversation.blocking(work).await.into_iter();
    // Lanes come in order.
    conversation
        .send(|_| {
            if done.next() == Some(true) {
                0
            } else {
                u64::MAX
            }
        })
        .await?;
    Ok(Flow::Continue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_with_a_nul() {
        assert_eq!(path(b"/a\0"), Some("/a".into()));
        assert_eq!(path(b"/a\0b\0"), Some("/a".into()), "as C would see it");
        assert_eq!(path(b"\0"), Some("".into()), "there is no such file");
        for none in [&b""[..], b"/a", b"/a\0b"] {
            assert_eq!(path(none), None);
        }
        let mut long = vec![b'a'; PATH_MAX];
        long[PATH_MAX - 1] = 0;
        assert!(path(&long).is_some());
        long.insert(0, b'a');
        assert_eq!(path(&long), None);
    }
}
