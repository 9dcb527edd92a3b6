//! Follows the lengths of messages through a body, in whatever pieces it comes. The bytes of the
//! messages are not looked at, and nothing is kept.

/// Before each message: a flag, and the message's length in four bytes.
const PREFIX_BYTES: usize = 5;

/// Where in a body the next byte is.
#[derive(Debug)]
pub(super) struct Messages {
    bytes_max: u32,
    prefix: [u8; PREFIX_BYTES],
    /// Of the prefix, seen already.
    seen: usize,
    /// Of a message, still to come.
    left: usize,
}

/// A message is announced that is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong {
    pub(super) bytes: u32,
}

impl Messages {
    /// At the start of a body whose messages have at most so many bytes.
    pub(super) fn new(bytes_max: u32) -> Self {
        Self { bytes_max, prefix: [0; PREFIX_BYTES], seen: 0, left: 0 }
    }

    /// Goes on over a piece. Gives the length of all messages that begin in it together, or none if
    /// none does.
    pub(super) fn pass(&mut self, mut piece: &[u8]) -> Result<Option<u64>, TooLong> {
        let mut begun = None;
        while !piece.is_empty() {
            let (inside, rest) = piece.split_at(self.left.min(piece.len()));
            self.left -= inside.len();
            let (prefix, rest) = rest.split_at((PREFIX_BYTES - self.seen).min(rest.len()));
            piece = rest;
            match self.prefix(prefix) {
                Some(bytes) if bytes > self.bytes_max => return Err(TooLong { bytes }),
                Some(bytes) => {
                    self.left = usize::try_from(bytes).unwrap_or(usize::MAX);
                    *begun.get_or_insert(0) += u64::from(bytes);
                }
                None => {}
            }
        }
        Ok(begun)
    }

    /// Adds to the prefix, and gives the length once it is whole.
    fn prefix(&mut self, part: &[u8]) -> Option<u32> {
        let places = self.prefix.iter_mut().skip(self.seen);
        places.zip(part).for_each(|(place, byte)| *place = *byte);
        self.seen += part.len();
        if self.seen < PREFIX_BYTES {
            return None;
        }
        self.seen = 0;
        let [_flag, length @ ..] = self.prefix;
        Some(u32::from_be_bytes(length))
    }
}

#[cfg(test)]
mod tests {
    use super::{Messages, TooLong};

    /// A message of so many bytes, each of which would make a prefix of a long one.
    fn message(bytes: u32) -> Vec<u8> {
        let body = vec![0xff; usize::try_from(bytes).unwrap()];
        [&[0][..], &bytes.to_be_bytes(), &body].concat()
    }

    #[test]
    fn lengths_are_followed_through_pieces_of_every_size() {
        let lengths = [3, 0, 0, 10, 1];
        let body: Vec<u8> = lengths.into_iter().flat_map(message).collect();
        for size in 1..=body.len() {
            let mut messages = Messages::new(10);
            let begun: Vec<_> =
                body.chunks(size).filter_map(|piece| messages.pass(piece).unwrap()).collect();
            assert_eq!(begun.iter().sum::<u64>(), 14, "pieces of {size}");
            assert!(begun.len() <= lengths.len(), "pieces of {size}");
        }
    }

    #[test]
    fn a_long_message_is_found_by_its_prefix_alone() {
        let body: Vec<u8> = [message(10), vec![1, 0x40, 0, 0, 0]].concat();
        for size in 1..=body.len() {
            let mut messages = Messages::new(10);
            let outcomes: Vec<_> = body.chunks(size).map(|piece| messages.pass(piece)).collect();
            let (last, before) = outcomes.split_last().unwrap();
            assert_eq!(*last, Err(TooLong { bytes: 1 << 30 }), "pieces of {size}");
            assert!(before.iter().all(Result::is_ok), "pieces of {size}");
        }
    }
}
