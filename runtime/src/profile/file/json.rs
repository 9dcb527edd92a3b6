//! JSON text to a tree; `serde_json` parses. Refuses what it would let pass: a key that comes
//! twice, and nesting that no profile has.

use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{Place, ProfileFileError};
use super::node::{DEPTH_MAX, Entry, Node, Value, quoted};

/// A whole file.
pub(super) fn tree(text: &str) -> Result<Node, ProfileFileError> {
    if text.trim().is_empty() {
        return Ok(Node::empty());
    }
    let raw = serde_json::from_str::<&RawValue>(text).map_err(|source| {
        let place = Place::at(source.line(), source.column());
        ProfileFileError::Json { place, source }
    })?;
    Reader { text }.node(raw, DEPTH_MAX)
}

/// What finds out where a piece of the text begins.
struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    /// A piece borrowed from the text lies as far in it as the addresses differ.
    fn at(&self, raw: &'a RawValue) -> usize {
        raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    /// Reads a piece that is known to be JSON, though perhaps with a lone surrogate in a text.
    fn parse<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T, ProfileFileError> {
        serde_json::from_str(raw.get()).map_err(|source| {
            let place = Place::in_text(self.text, Some(self.at(raw)));
            ProfileFileError::Json { place, source }
        })
    }

    fn node(&self, raw: &'a RawValue, depth: usize) -> Result<Node, ProfileFileError> {
        let at = self.at(raw);
        let Some(depth) = depth.checked_sub(1) else {
            let place = Place::in_text(self.text, Some(at));
            return Err(ProfileFileError::TooDeep { place, limit: DEPTH_MAX });
        };
        let value = match raw.get().as_bytes().first() {
            Some(b'{') => Value::Table(self.entries(raw, depth)?),
            Some(b'[') => {
                let items: Vec<&RawValue> = self.parse(raw)?;
                let nodes = items.into_iter().map(|item| self.node(item, depth));
                Value::List(nodes.collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(self.parse(raw)?),
            Some(b't' | b'f') => Value::Bool(self.parse(raw)?),
            Some(b'n') | None => Value::Null,
            Some(_) => number(raw.get()),
        };
        Ok(Node { at, value })
    }

    fn entries(&self, raw: &'a RawValue, depth: usize) -> Result<Vec<Entry>, ProfileFileError> {
        let Pairs(pairs) = self.parse(raw)?;
        let mut names = std::collections::BTreeSet::new();
        let mut entries = Vec::new();
        for (key, value) in pairs {
            let (name, at): (String, _) = (self.parse(key)?, self.at(key));
            if !names.insert(name.clone()) {
                let place = Place::in_text(self.text, Some(at));
                return Err(ProfileFileError::DuplicateKey { place, key: quoted(&name) });
            }
            entries.push(Entry { name, at, node: self.node(value, depth)? });
        }
        Ok(entries)
    }
}

fn number(text: &str) -> Value {
    match text.parse() {
        Ok(number) => Value::Integer(number),
        Err(_fraction) => Value::Float(text.parse().unwrap_or(f64::INFINITY)),
    }
}

/// A table, its keys and values unread: a map type would drop the first of two equal keys.
struct Pairs<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor)
    }
}
