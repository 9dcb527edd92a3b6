//! Reads the deadline that a client sets for its call.

use std::time::Duration;

use http::HeaderMap;

/// The client's deadline. One that cannot be read is none, as the hatch has its own anyway.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    read(headers.get("grpc-timeout")?.to_str().ok()?)
}

fn read(text: &str) -> Option<Duration> {
    let unit = text.get(text.len().checked_sub(1)?..)?;
    let digits = text.strip_suffix(unit)?;
    // The protocol's bound, which keeps the product below from overflowing.
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::read;

    #[test]
    fn each_text_is_read_or_none() {
        let rows = [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("+1S", None),
            (" 1S", None),
            ("123456789S", None),
            ("1é", None),
        ];
        for (text, time) in rows {
            assert_eq!(read(text), time, "{text:?}");
        }
    }
}
