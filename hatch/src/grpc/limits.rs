//! What a guest may make the host keep or wait for, in numbers. Who keeps to them is elsewhere.

use std::time::Duration;

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;

/// All limits of a hatch. The methods of the builder say what each one means.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) message_bytes_max: u32,
    pub(super) response_bytes_max: u32,
    pub(super) buffered_bytes_max: u32,
    pub(super) streams_max: u32,
    pub(super) connections_max: u32,
    pub(super) header_list_bytes_max: u32,
    pub(super) resets_max: u32,
    pub(super) deadline: Duration,
    pub(super) first_bytes: Duration,
    pub(super) keepalive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 4 * MIB,
            response_bytes_max: 4 * MIB,
            buffered_bytes_max: 64 * MIB,
            streams_max: 100,
            connections_max: 16,
            header_list_bytes_max: 16 * KIB,
            resets_max: 100,
            deadline: Duration::from_secs(60),
            first_bytes: Duration::from_secs(10),
            keepalive: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// The first one that is too small to serve anything, and what would do.
    pub(super) fn fault(&self) -> Option<(&'static str, u64)> {
        let message = self.message_bytes_max.max(self.response_bytes_max);
        let numbers = [
            ("message_bytes_max", self.message_bytes_max, 1),
            ("response_bytes_max", self.response_bytes_max, 1),
            ("buffered_bytes_max", self.buffered_bytes_max, message),
            ("streams_max", self.streams_max, 1),
            ("connections_max", self.connections_max, 1),
            // The headers of ordinary clients come to about 500.
            ("header_list_bytes_max", self.header_list_bytes_max, KIB),
            ("resets_max", self.resets_max, 1),
        ];
        let times = [
            ("deadline", self.deadline),
            ("first_bytes", self.first_bytes),
            ("keepalive", self.keepalive),
        ];
        let small = numbers.into_iter().find(|(_, value, least)| value < least);
        let short = times.into_iter().find(|(_, time)| *time < Duration::from_millis(1));
        let small = small.map(|(name, _, least)| (name, u64::from(least)));
        small.or(short.map(|(name, _)| (name, 1)))
    }
}
