//! The services over a real server, by clients that are threads of this process, in all layouts.
#![allow(unreachable_pub, reason = "one program in several files")]

mod files;
mod first;
mod hostile;
mod lanes;
mod others;
mod printf;
mod progress;
mod rig;
mod standard;
