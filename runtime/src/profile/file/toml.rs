//! TOML text to a tree; the `toml` crate parses, and refuses a key that comes twice. It bounds
//! brackets and dotted keys but not the one within the other, which is done here.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::error::{Place, ProfileFileError};
use super::node::{DEPTH_MAX, Entry, Node, Value};

/// A whole file.
pub(super) fn tree(text: &str) -> Result<Node, ProfileFileError> {
    if let Some(at) = too_deep(text) {
        let place = Place::in_text(text, Some(at));
        return Err(ProfileFileError::TooDeep { place, limit: DEPTH_MAX });
    }
    let table = DeTable::parse(text).map_err(|source| {
        let place = Place::in_text(text, source.span().map(|span| span.start));
        ProfileFileError::Toml { place, source: Box::new(source) }
    })?;
    Ok(Node { at: 0, value: Value::Table(entries(table.get_ref())) })
}

/// One value, as it stands after `=`; the place of an error in it is of no use to anyone.
pub(super) fn value(text: &str) -> Result<Node, ProfileFileError> {
    let place = Place::default();
    if too_deep(text).is_some() {
        return Err(ProfileFileError::TooDeep { place, limit: DEPTH_MAX });
    }
    match DeValue::parse(text) {
        Ok(value) => Ok(node(&value)),
        Err(source) => Err(ProfileFileError::Toml { place, source: Box::new(source) }),
    }
}

/// Where nesting goes too deep, before anything recurses over it: each kind of bracket is counted by
/// itself, since in a broken text one may be closed by the other, and the dots of each key.
fn too_deep(text: &str) -> Option<usize> {
    let (mut square, mut curly, mut dots) = (0_usize, 0_usize, 0_usize);
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            TokenKind::LeftSquareBracket => (square, dots) = (square + 1, 0),
            TokenKind::LeftCurlyBracket => (curly, dots) = (curly + 1, 0),
            TokenKind::RightSquareBracket => square = square.saturating_sub(1),
            TokenKind::RightCurlyBracket => curly = curly.saturating_sub(1),
            TokenKind::Equals | TokenKind::Comma | TokenKind::Newline => dots = 0,
            TokenKind::Whitespace
            | TokenKind::Comment
            | TokenKind::LiteralString
            | TokenKind::BasicString
            | TokenKind::MlLiteralString
            | TokenKind::MlBasicString
            | TokenKind::Atom
            | TokenKind::Eof => {}
        }
        if square.max(curly).max(dots) > DEPTH_MAX {
            return Some(token.span().start());
        }
    }
    None
}

fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    let entry = |(key, value): (&Spanned<_>, _)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        Entry { name: name.to_string(), at: key.span().start, node: node(value) }
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.at);
    entries
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let at = value.span().start;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => integer(number.as_str(), number.radix()),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(node).collect()),
        DeValue::Table(table) => Value::Table(entries(table)),
    };
    Node { at, value }
}

/// A number too large for any field is told as what it nearly is.
fn integer(digits: &str, radix: u32) -> Value {
    match i128::from_str_radix(digits, radix) {
        Ok(number) => Value::Integer(number),
        Err(_too_large) => Value::Float(digits.parse().unwrap_or(f64::INFINITY)),
    }
}
