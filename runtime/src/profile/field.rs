//! Names of profile fields, as errors print them; holds no values.

use core::fmt;

/// A place in a profile: a field, perhaps one entry of it, perhaps one half of that entry.
///
/// Prints as the user would write it: `ro_binds[2].target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    name: &'static str,
    index: Option<usize>,
    part: Option<&'static str>,
}

impl Field {
    /// A whole field.
    pub const fn new(name: &'static str) -> Self {
        Self { name, index: None, part: None }
    }

    /// One entry of a list field, counted from 0.
    #[must_use]
    pub const fn at(self, index: usize) -> Self {
        Self { index: Some(index), ..self }
    }

    /// One part of the field or entry, such as `source`.
    #[must_use]
    pub const fn part(self, part: &'static str) -> Self {
        Self { part: Some(part), ..self }
    }

    /// The name of the field itself, without index and part.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Name, index and part.
    pub(super) const fn steps(self) -> (&'static str, Option<usize>, Option<&'static str>) {
        (self.name, self.index, self.part)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(index) = self.index {
            write!(f, "[{index}]")?;
        }
        if let Some(part) = self.part {
            write!(f, ".{part}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn fields_print_as_they_are_written() {
        let rows = [
            (Field::new("cwd"), "cwd"),
            (Field::new("stubs").at(0), "stubs[0]"),
            (Field::new("ro_binds").at(2).part("target"), "ro_binds[2].target"),
            (Field::new("limits").part("nofile"), "limits.nofile"),
        ];
        for (field, words) in rows {
            assert_eq!(field.to_string(), words);
        }
    }
}
