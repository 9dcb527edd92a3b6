//! Resource limits of a profile and how files spell "unlimited"; sets nothing.

use serde::{Deserialize, Serialize};

/// Resource limits of the guest, soft and hard alike.
///
/// Where the host's own hard limit is lower, that one holds. A core dump is never written and
/// no handler for one is run (`RLIMIT_CORE` is 1); that is not a choice.
/// See [getrlimit(2)](https://man7.org/linux/man-pages/man2/getrlimit.2.html). In a file an
/// optional limit is a number or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Processes and threads of one run (`RLIMIT_NPROC`); default 1024. Counted per sandbox from
    /// Linux 5.14, per kernel uid before.
    #[serde(with = "limit")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "super::schema::Limit"))]
    pub nproc: Option<u64>,
    /// Open descriptors of one process (`RLIMIT_NOFILE`); default 1024.
    pub nofile: u64,
    /// Bytes of one file (`RLIMIT_FSIZE`); default 1 GiB.
    pub fsize_bytes: u64,
    /// Bytes of locked memory (`RLIMIT_MEMLOCK`); default 64 KiB.
    pub memlock_bytes: u64,
    /// Queued signals and POSIX timers (`RLIMIT_SIGPENDING`); default 1024.
    pub sigpending: u64,
    /// Bytes in POSIX message queues (`RLIMIT_MSGQUEUE`); default 256 KiB.
    pub msgqueue_bytes: u64,
    /// Bytes of a process's stack, and of each glibc thread's (`RLIMIT_STACK`); default 8 MiB.
    #[serde(with = "limit")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "super::schema::Limit"))]
    pub stack_bytes: Option<u64>,
    /// Bytes of one process's address space (`RLIMIT_AS`); default unlimited.
    #[serde(with = "limit")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "super::schema::Limit"))]
    pub address_space_bytes: Option<u64>,
    /// Seconds of processor time of one process (`RLIMIT_CPU`); default unlimited.
    #[serde(with = "limit")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "super::schema::Limit"))]
    pub cpu_seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nproc: Some(1024),
            nofile: 1024,
            fsize_bytes: 1 << 30,
            memlock_bytes: 64 << 10,
            sigpending: 1024,
            msgqueue_bytes: 256 << 10,
            stack_bytes: Some(8 << 20),
            address_space_bytes: None,
            cpu_seconds: None,
        }
    }
}

/// An optional limit: a number or `"unlimited"`, since TOML has no null.
mod limit {
    use core::fmt;

    use serde::de::{Deserializer, Error, Unexpected, Visitor};
    use serde::ser::Serializer;

    #[expect(clippy::ref_option, reason = "the shape that serde's `with` calls")]
    pub(super) fn serialize<S: Serializer>(
        limit: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match limit {
            Some(limit) => serializer.serialize_u64(*limit),
            None => serializer.serialize_str("unlimited"),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }

    struct LimitVisitor;

    impl Visitor<'_> for LimitVisitor {
        type Value = Option<u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number that is not negative, or \"unlimited\"")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok(Some(value))
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            let wrong = |_| E::invalid_value(Unexpected::Signed(value), &self);
            u64::try_from(value).map(Some).map_err(wrong)
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
            match value {
                "unlimited" => Ok(None),
                other => Err(E::invalid_value(Unexpected::Str(other), &self)),
            }
        }
    }
}
