//! Why a gRPC hatch is not built. Nothing is refused later than that: a hatch that was built opens.

use core::fmt;

use crate::NameError;

/// What is wrong with the description of a hatch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrpcHatchError {
    /// Its name is none.
    Name(NameError),
    /// No method is allowed, so every call would be refused.
    NothingAllowed,
    /// An entry of the allow-list is not the full name of a method.
    Method {
        /// The entry, escaped, and cut where it is long.
        entry: String,
        /// What is wrong with it.
        fault: MethodFault,
    },
    /// What was given as descriptors is not a `google.protobuf.FileDescriptorSet`.
    Descriptors {
        /// What the decoder says.
        reason: String,
    },
    /// The descriptors do not have an allowed method.
    NotDescribed {
        /// The method.
        method: String,
        /// The one of the descriptors that was probably meant.
        nearest: Option<String>,
    },
    /// A service was added, and none of its methods is allowed.
    ServiceUnreachable {
        /// Its full name.
        service: &'static str,
    },
    /// Two services have the same name.
    ServiceTwice {
        /// Their full name.
        service: &'static str,
    },
    /// A limit is too small to serve anything.
    Limit {
        /// The method of the builder that sets it.
        limit: &'static str,
        /// The least value, in the limit's unit; milliseconds for a time.
        least: u64,
    },
}

/// What keeps a text from being the full name of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MethodFault {
    /// It does not begin with `/`.
    Start,
    /// It has not exactly two parts, a service and a method.
    Parts,
    /// A part, or a part of a part between dots, is empty or begins with a digit.
    Identifier,
    /// A character that no name has; `*` is no wildcard.
    Character(char),
    /// It is longer than 256 bytes.
    Long,
}

impl fmt::Display for GrpcHatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::NothingAllowed => f.write_str(
                "allow-list: empty, so every call would be refused; allow a method, for instance \
                 /greeter.Greeter/SayHello",
            ),
            Self::Method { entry, fault } => write!(
                f,
                "allow-list: `{entry}` {fault}; expected /package.Service/Method, for instance \
                 /greeter.Greeter/SayHello"
            ),
            Self::Descriptors { reason } => write!(
                f,
                "descriptors: no FileDescriptorSet ({reason}); give the bytes that `protoc \
                 --descriptor_set_out` writes"
            ),
            Self::NotDescribed { method, nearest } => {
                write!(f, "allow-list: {method} is not in the descriptors; ")?;
                match nearest {
                    Some(nearest) => write!(f, "did you mean {nearest}?"),
                    None => f.write_str("correct it, or give the descriptors that have it"),
                }
            }
            Self::ServiceUnreachable { service } => write!(
                f,
                "service {service}: none of its methods is allowed; allow /{service}/…, or do not \
                 add it"
            ),
            Self::ServiceTwice { service } => {
                write!(f, "service {service}: added twice; leave one of them out")
            }
            Self::Limit { limit, least } => {
                write!(f, "{limit}: too small to serve anything; at least {least}")
            }
        }
    }
}

impl fmt::Display for MethodFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("does not begin with `/`"),
            Self::Parts => f.write_str("is not one service and one method"),
            Self::Identifier => f.write_str("has a part that is empty or begins with a digit"),
            Self::Character('*') => {
                f.write_str("has `*`, and there are no wildcards: name each method")
            }
            Self::Character(c) => write!(f, "has `{}`", c.escape_debug()),
            Self::Long => f.write_str("is longer than 256 bytes"),
        }
    }
}

impl core::error::Error for GrpcHatchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Name(error) => Some(error),
            Self::NothingAllowed
            | Self::Method { .. }
            | Self::Descriptors { .. }
            | Self::NotDescribed { .. }
            | Self::ServiceUnreachable { .. }
            | Self::ServiceTwice { .. }
            | Self::Limit { .. } => None,
        }
    }
}
