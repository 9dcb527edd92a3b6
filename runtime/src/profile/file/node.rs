//! A profile text as a tree in which every key and value knows its place; knows no profile.

/// Deepest nesting that is read; a profile has five. Trees are walked and dropped by recursion,
/// so that a deeper one would cost the stack.
pub(super) const DEPTH_MAX: usize = 8;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Byte offset in the text.
    pub(super) at: usize,
    pub(super) value: Value,
}

/// What TOML and JSON can both say, and what only one of them can.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// JSON's `null`.
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    /// TOML's dates and times, as written.
    Date(String),
    List(Vec<Node>),
    /// In the order of the text; no name twice.
    Table(Vec<Entry>),
}

/// One key of a table and what it is set to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Byte offset of the key.
    pub(super) at: usize,
    pub(super) node: Node,
}

/// Longest piece of a text that an error repeats, in characters.
const QUOTED_MAX: usize = 48;

/// A piece of somebody's text for one line of an error: escaped, and not longer than a line.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTED_MAX).is_some() {
        short.push_str("...");
    }
    short
}

/// A text, in words.
pub(super) fn text_words(text: &str) -> String {
    format!("the text \"{}\"", quoted(text))
}

impl Node {
    /// A table without keys.
    pub(super) fn empty() -> Self {
        Self { at: 0, value: Value::Table(Vec::new()) }
    }

    /// What stands here, in words.
    pub(super) fn words(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number:?}"),
            Value::Text(text) => text_words(text),
            Value::Date(date) => format!("the date {date}"),
            Value::List(_) => "a list".to_owned(),
            Value::Table(entries) => match entries.len() {
                1 => "a table".to_owned(),
                keys => format!("a table with {keys} keys"),
            },
        }
    }

    /// The value of a key, where this is a table that has it.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// The value of a table's one key.
    pub(super) fn only(&self) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        let [entry] = entries.as_slice() else { return None };
        Some(&entry.node)
    }

    /// An entry of a list, where this is one that is long enough.
    pub(super) fn item(&self, index: usize) -> Option<&Self> {
        let Value::List(items) = &self.value else { return None };
        items.get(index)
    }

    /// Sets what lies beneath by names; tables are made on the way, and what is no table makes
    /// room for one.
    pub(super) fn put(&mut self, names: &[&str], node: Self) {
        let Some((name, rest)) = names.split_first() else {
            *self = node;
            return;
        };
        if !matches!(self.value, Value::Table(_)) {
            *self = Self::empty();
        }
        let Value::Table(entries) = &mut self.value else { return };
        let found = entries.iter().position(|entry| entry.name == *name);
        let new = Entry { name: (*name).to_owned(), at: 0, node: Self::empty() };
        let index = found.unwrap_or_else(|| {
            entries.push(new);
            entries.len() - 1
        });
        if let Some(entry) = entries.get_mut(index) {
            entry.node.put(rest, node);
        }
    }
}
