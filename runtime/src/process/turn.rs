//! What a turn of a run is asked for and what it comes to; takes none.

use super::output::Chunk;

/// What becomes of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// It is kept, up to the cap.
    All,
    /// It is handed over, a piece at a time; what nobody takes stays in the pipe.
    Pieces,
}

/// How long a turn may wait for something to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Until something does or is due.
    Yes,
}

/// What a turn came to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// A piece of output.
    Chunk(Chunk),
    /// Nothing more will come: no output, and with [`Taking::All`] no end either.
    Done,
    /// Something happened, or nothing did; the next thing to do is to wait.
    Again,
    /// There may be more to move without waiting.
    More,
}
