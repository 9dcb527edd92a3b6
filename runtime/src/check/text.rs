//! Numbers and paths as a report writes them.

/// A size in the largest unit that says it exactly.
pub(super) fn bytes(count: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| count >= *size && count.is_multiple_of(*size));
    match unit {
        Some((size, name)) => format!("{} {name}", count / size),
        None => format!("{count} bytes"),
    }
}

/// A path as one word of a shell.
pub(super) fn shell_word(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, shell_word};

    #[test]
    fn a_path_is_one_word() {
        let rows =
            [("/usr/x-1", "/usr/x-1"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'"), ("", "")];
        for (path, word) in rows {
            assert_eq!(shell_word(path), word);
        }
    }

    #[test]
    fn a_size_is_exact() {
        let rows = [
            (0, "0 bytes"),
            (1, "1 bytes"),
            (1024, "1 KiB"),
            (1025, "1025 bytes"),
            (256 << 20, "256 MiB"),
            (3 << 29, "1536 MiB"),
            (1 << 40, "1 TiB"),
        ];
        for (count, text) in rows {
            assert_eq!(bytes(count), text);
        }
    }
}
