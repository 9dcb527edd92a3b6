//! Reads the kernel's id maps and the subordinate id files; writes none.

use super::IdRange;

/// The ids that a namespace has, from `/proc/self/uid_map`: `INSIDE OUTSIDE COUNT` a line.
///
/// See [user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html).
pub(super) fn parse_map(text: &str) -> Option<Vec<IdRange>> {
    text.lines()
        .map(|line| {
            let mut numbers = line.split_ascii_whitespace().map(str::parse);
            let first = numbers.next()?.ok()?;
            let count = numbers.nth(1)?.ok()?;
            Some(IdRange { first, count })
        })
        .collect()
}

/// Who has been given which ids, from `/etc/subuid`: `OWNER:FIRST:COUNT` a line, where the owner is
/// a name or a uid.
///
/// Lines that are not of that shape are passed over, as shadow's own tools do.
pub(super) fn parse_subordinate(text: &str) -> impl Iterator<Item = (&str, IdRange)> {
    text.lines().filter_map(|line| {
        let mut parts = line.trim().splitn(3, ':');
        let owner = parts.next()?;
        let first = parts.next()?.parse().ok()?;
        let count = parts.next()?.parse().ok()?;
        (count > 0).then_some((owner, IdRange { first, count }))
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_map, parse_subordinate};
    use crate::host::IdRange;

    const fn range(first: u32, count: u32) -> IdRange {
        IdRange { first, count }
    }

    #[test]
    fn maps_give_the_inside() {
        let rows = [
            ("         0          0 4294967295\n", Some(vec![range(0, u32::MAX)])),
            ("0 1000 1\n1 100000 65536\n", Some(vec![range(0, 1), range(1, 65536)])),
            ("", Some(vec![])),
            ("0 0\n", None),
            ("zero 0 1\n", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_map(text), expected, "{text:?}");
        }
    }

    #[test]
    fn subordinate_lines_are_read_and_others_passed_over() {
        let text = "user:100000:65536\n# comment\n1001:165536:65536\nbad:x:1\nnone:5:0\n\n";
        let found: Vec<_> = parse_subordinate(text).collect();
        assert_eq!(found, [("user", range(100_000, 65536)), ("1001", range(165_536, 65536))]);
    }
}
