//! The launcher's side of the sockets: what comes in whole or not at all, what goes out at once.

mod sys;

pub(crate) use sys::{FDS_MAX, Received, pair, receive, send_with};
