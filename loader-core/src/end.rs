//! How a run ends.

use std::time::Duration;

use rpc_server::EndCause;

use crate::device::DeviceError;
use crate::exit;

/// How long complete requests are served once the run is ending.
pub const DRAIN: Duration = Duration::from_secs(1);
/// How long a kernel is awaited that has been told to stop.
pub const STOP: Duration = Duration::from_millis(500);

/// What ended a run first.
#[derive(Debug)]
pub enum Cause {
    /// The last kernel has ended; its `ret` word.
    Returned(i32),
    /// The device program ended it through a call; the code it gave.
    Called(i32),
    /// The device program aborted: the process ends by SIGABRT, as one that aborts does.
    Aborted,
    /// `--timeout` ran out.
    TimedOut,
    /// This signal came.
    Interrupted(i32),
    /// A kernel faulted, or the device API failed.
    Failed(DeviceError),
}

impl From<rpc_server::End> for Cause {
    fn from(end: rpc_server::End) -> Self {
        match end.cause {
            EndCause::Abort => Self::Aborted,
            _ => Self::Called(end.code),
        }
    }
}

impl Cause {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match *self {
            Self::Returned(value) | Self::Called(value) => exit::low_bits(value),
            Self::TimedOut => exit::TIMEOUT,
            Self::Interrupted(number) => exit::signal(number),
            Self::Aborted | Self::Failed(DeviceError::Fault(_)) => exit::FAULT,
            Self::Failed(_) => exit::LOADER,
        }
    }

    /// What the user is told, if anything; `waiting` names the ports with an open exchange.
    pub fn sentence(&self, timeout: Option<Duration>, waiting: &[String]) -> Option<String> {
        match self {
            Self::Returned(value) => {
                exit::hidden_failure("what the program's threads return, or-ed,", *value)
            }
            Self::Called(value) => exit::hidden_failure("the program's exit status", *value),
            Self::TimedOut => {
                let limit = timeout.unwrap_or_default().as_secs_f64();
                Some(if waiting.is_empty() {
                    format!(
                        "the program had not ended after {limit} s; at that moment no port had an open \
                         exchange, so it did not wait for the host"
                    )
                } else {
                    format!(
                        "the program had not ended after {limit} s; ports with an open exchange: {}",
                        list(waiting)
                    )
                })
            }
            Self::Aborted | Self::Interrupted(_) => None,
            Self::Failed(error) => Some(error.to_string()),
        }
    }
}

/// At most this many ports are named.
const NAMED: usize = 8;

fn list(ports: &[String]) -> String {
    let mut text = ports[..ports.len().min(NAMED)].join(", ");
    if ports.len() > NAMED {
        text = format!("{text} and {} more", ports.len() - NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        let fault = DeviceError::Fault("it fell".to_owned());
        let other = DeviceError::Missing("_start".to_owned());
        for (cause, code) in [
            (Cause::Returned(0x103), 3),
            (Cause::Called(-1), 255),
            (Cause::from(rpc_server::End::exit(-1)), 255),
            (Cause::from(rpc_server::End::ABORT), 134),
            (Cause::TimedOut, 124),
            (Cause::Interrupted(2), 130),
            (Cause::Interrupted(15), 143),
            (Cause::Failed(fault), 134),
            (Cause::Failed(other), 125),
        ] {
            assert_eq!(cause.code(), code, "{cause:?}");
        }
    }

    #[test]
    fn sentences() {
        let said = |cause: Cause, waiting: &[String]| {
            cause.sentence(Some(Duration::from_millis(1500)), waiting)
        };
        assert_eq!(said(Cause::Returned(1), &[]), None);
        assert_eq!(said(Cause::Aborted, &[]), None);
        assert!(said(Cause::Returned(256), &[]).unwrap().contains("256"));
        let none = said(Cause::TimedOut, &[]).unwrap();
        assert!(none.contains("1.5 s; at that moment no port had"), "{none}");
        let ports: Vec<_> = (0..10).map(|port| format!("{port} (exit)")).collect();
        let all = said(Cause::TimedOut, &ports).unwrap();
        assert!(
            all.contains("0 (exit), 1 (exit)") && all.ends_with("and 2 more"),
            "{all}"
        );
        assert!(
            said(Cause::TimedOut, &ports[..1])
                .unwrap()
                .ends_with(": 0 (exit)")
        );
    }
}
