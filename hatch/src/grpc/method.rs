//! Full names of methods, `/package.Service/Method`: their shape, and how those of a guest, which
//! may be anything, are shown.

use core::fmt::{self, Write};

use super::error::MethodFault;

/// The longest name that is allowed, and the most that is shown of one, in bytes.
pub(super) const BYTES_MAX: usize = 256;

/// The service of a full name, if it is one.
pub(super) fn service(method: &str) -> Result<&str, MethodFault> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_identifier = |part: &str| part.starts_with(|c: char| is_word(c) && !c.is_ascii_digit());
    if method.len() > BYTES_MAX {
        return Err(MethodFault::Long);
    }
    if let Some(other) = method.chars().find(|c| !is_word(*c) && !['/', '.'].contains(c)) {
        return Err(MethodFault::Character(other));
    }
    let parts = method.strip_prefix('/').ok_or(MethodFault::Start)?;
    let (service, name) = parts.split_once('/').ok_or(MethodFault::Parts)?;
    if name.contains('/') {
        return Err(MethodFault::Parts);
    }
    if name.contains('.') {
        return Err(MethodFault::Character('.'));
    }
    match service.split('.').chain([name]).all(is_identifier) {
        true => Ok(service),
        false => Err(MethodFault::Identifier),
    }
}

/// A text of the guest's, fit for logs and messages: printable ASCII, and cut where it is long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CUT: &str = "...";
        let mut left = BYTES_MAX - CUT.len();
        for c in self.0.chars() {
            // Everything that it gives is ASCII, so its length is its bytes.
            let escaped = c.escape_default();
            match left.checked_sub(escaped.len()) {
                Some(rest) => left = rest,
                None => return f.write_str(CUT),
            }
            match c {
                // Escaped in source code, and harmless in a text.
                '\'' | '"' => f.write_char(c)?,
                _ => escaped.fmt(f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{MethodFault, Shown, service};

    #[test]
    fn each_shape_is_judged() {
        let long = format!("/{}/M", "s".repeat(254));
        let rows = [
            ("/greeter.Greeter/SayHello", Ok("greeter.Greeter")),
            ("/a.b.v1.S_1/_m", Ok("a.b.v1.S_1")),
            ("/S/M", Ok("S")),
            ("", Err(MethodFault::Start)),
            ("S/M", Err(MethodFault::Start)),
            ("/SM", Err(MethodFault::Parts)),
            ("/S/M/", Err(MethodFault::Parts)),
            ("//S/M", Err(MethodFault::Parts)),
            ("/S/", Err(MethodFault::Identifier)),
            ("//M", Err(MethodFault::Identifier)),
            ("/.S/M", Err(MethodFault::Identifier)),
            ("/a..S/M", Err(MethodFault::Identifier)),
            ("/S/1M", Err(MethodFault::Identifier)),
            ("/../M", Err(MethodFault::Identifier)),
            ("/S/a.M", Err(MethodFault::Character('.'))),
            ("/S/*", Err(MethodFault::Character('*'))),
            ("/S%2fM", Err(MethodFault::Character('%'))),
            ("/S/M ", Err(MethodFault::Character(' '))),
            ("/S/é", Err(MethodFault::Character('é'))),
            (&long, Err(MethodFault::Long)),
        ];
        for (method, expected) in rows {
            assert_eq!(service(method), expected, "{method}");
        }
    }

    #[test]
    fn a_text_is_shown_harmless_and_short() {
        let cut = format!("{}...", "a".repeat(253));
        let rows = [
            ("/S/M", "/S/M"),
            ("/S\n\u{1b}[31m", "/S\\n\\u{1b}[31m"),
            ("it's \"é\"", "it's \"\\u{e9}\""),
            (&"a".repeat(253), &"a".repeat(253)),
            (&"a".repeat(1000), &cut),
        ];
        for (text, shown) in rows {
            assert_eq!(Shown(text).to_string(), shown);
        }
        assert!(Shown(&"\n".repeat(1000)).to_string().len() <= 256);
    }
}
