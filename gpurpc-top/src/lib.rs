#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`source`] | [`Source`](source::Source): where snapshots come from |
//! | [`live`] | [`Live`](live::Live): the file of a loader as a source |
//! | [`state`] | [`State`](state::State): what is shown; pure, with the time given to it |
//! | [`view`] | [`Dashboard`](view::Dashboard): widgets that draw a state and keep nothing |
//! | [`keys`] | the table that dispatches keys and is the help |
//! | [`palette`] | colours and glyphs |
//! | [`units`] | numbers as people read them |
//! | [`format`](mod@format) | a snapshot as table, JSON and CSV |
//!
//! The library needs `rpc-stats` only. The feature `program`, which is on by default, adds the
//! program with its loaders and the terminal.
#![forbid(unsafe_code)]

pub mod format;
pub mod keys;
pub mod live;
pub mod palette;
pub mod source;
pub mod state;
pub mod table;
pub mod units;
pub mod view;
