//! Answers as JSON text; it reads none. Bytes are lossless: each becomes the character of its
//! number, so that the reader gets them back whatever they were.

use core::fmt;

/// An answer.
#[derive(Debug)]
pub(crate) enum Value {
    /// A number.
    Number(i64),
    /// A yes or a no.
    Bool(bool),
    /// Any bytes.
    Text(Vec<u8>),
    /// Several answers.
    List(Vec<Value>),
    /// An answer that is JSON already.
    Raw(Vec<u8>),
    /// Named answers.
    Map(Vec<(Vec<u8>, Value)>),
}

impl Value {
    /// A map from names known here.
    pub(crate) fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
        let entries = entries.into_iter();
        Value::Map(entries.map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
    }

    /// What the kernel refused, and how.
    pub(crate) fn errno(errno: i32) -> Value {
        Value::map([("errno", Value::Number(errno.into()))])
    }

    /// The value, or what the kernel said.
    pub(crate) fn of<T: Into<Value>>(outcome: std::io::Result<T>) -> Value {
        match outcome {
            Ok(value) => value.into(),
            Err(error) => Value::errno(error.raw_os_error().unwrap_or(-1)),
        }
    }
}

macro_rules! from {
    ($($type:ty => |$value:ident| $made:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($value: $type) -> Value {
                $made
            }
        }
    )*};
}

from! {
    bool => |value| Value::Bool(value);
    &str => |value| Value::Text(value.as_bytes().to_vec());
    Vec<u8> => |value| Value::Text(value);
    i32 => |value| Value::Number(value.into());
    i64 => |value| Value::Number(value);
    u32 => |value| Value::Number(value.into());
    u64 => |value| Value::Number(i64::try_from(value).unwrap_or(-1));
    usize => |value| Value::Number(i64::try_from(value).unwrap_or(-1));
    Vec<Value> => |value| Value::List(value);
}

fn text(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => write!(f, "\\u{byte:04x}")?,
            0x20..0x7f => write!(f, "{}", char::from(*byte))?,
        }
    }
    f.write_str("\"")
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Text(bytes) => text(bytes, f),
            Value::Raw(bytes) => f.write_str(std::str::from_utf8(bytes).unwrap_or("null")),
            Value::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
            Value::Map(entries) => {
                f.write_str("{")?;
                for (index, (name, value)) in entries.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    text(name, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}
