//! The two numbers of a kernel's release that mean something here; for words, never for decisions.

/// Major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Release {
    /// From which on the kernel counts processes, pending signals, queues and locked memory in
    /// each user namespace; before, by uid.
    pub(crate) const COUNTS_BY_NAMESPACE: Release = Release { major: 5, minor: 14 };

    pub(crate) fn parse(text: &str) -> Option<Release> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some(Release { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
    }

    /// Of the running kernel.
    pub(crate) fn own() -> Option<Release> {
        Release::parse(&rustix::system::uname().release().to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn releases_are_compared_by_number() {
        let release = |text| Release::parse(text).unwrap();
        assert!(release("5.9.1") < release("5.14.0-427.el9"));
        assert!(release("5.14") < release("6.1.0"));
        assert_eq!(release("6.18.44-fc"), Release { major: 6, minor: 18 });
        assert_eq!(Release::parse("six"), None);
        assert!(Release::own().is_some());
    }
}
