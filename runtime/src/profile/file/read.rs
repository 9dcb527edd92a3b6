//! A tree to a value of any type that serde can read; keeps faults as facts, with their place.

use core::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::node::{Entry, Node, Value};

/// The names that a type knows; serde's derived code has them as constants.
pub(super) type Names = &'static [&'static str];

/// What is wrong at one place of a tree.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) what: What,
    /// From the inside out.
    steps: Vec<Step>,
    /// Where in the text, once it is known.
    pub(super) at: Option<usize>,
}

/// The kinds of fault.
#[derive(Debug)]
pub(super) enum What {
    UnknownKey {
        name: String,
        known: Names,
    },
    UnknownWord {
        word: String,
        allowed: Names,
    },
    MissingKey {
        name: &'static str,
    },
    /// Filled in by the node at which it happens.
    WrongType {
        found: String,
    },
    /// The type's own words: what its text notation does not allow.
    Notation {
        reason: String,
    },
}

#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

impl Fault {
    fn new(what: What) -> Self {
        Self { what, steps: Vec::new(), at: None }
    }

    fn wrong_type() -> Self {
        Self::new(What::WrongType { found: String::new() })
    }

    /// The fault as it is at a node: the innermost one is what was found, and where.
    fn at_node(mut self, node: &Node) -> Self {
        if let What::WrongType { found } = &mut self.what
            && found.is_empty()
        {
            *found = node.words();
        }
        self.at.get_or_insert(node.at);
        self
    }

    fn beneath(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Where it is, as a user would write it: `mounts[0].tmpfs`; empty for the whole file.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
            }
        }
        path
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.what, self.path())
    }
}

impl core::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(words: T) -> Self {
        Self::new(What::Notation { reason: words.to_string() })
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::wrong_type()
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::wrong_type()
    }

    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        Self::wrong_type()
    }

    fn unknown_variant(word: &str, allowed: Names) -> Self {
        Self::new(What::UnknownWord { word: word.to_owned(), allowed })
    }

    fn unknown_field(name: &str, known: Names) -> Self {
        Self::new(What::UnknownKey { name: name.to_owned(), known })
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(What::MissingKey { name })
    }
}

impl Node {
    fn visit<'de, V: Visitor<'de>>(&'de self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (Err(_), Ok(number)) => visitor.visit_i64(number),
                (Err(_), Err(_)) => Err(Fault::wrong_type()),
            },
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Date(_) => Err(Fault::wrong_type()),
            Value::List(items) => visitor.visit_seq(Items { items, index: 0 }),
            Value::Table(entries) => visitor.visit_map(Entries { entries, current: None }),
        }
    }

    /// A word, or a table whose one key is a word.
    fn choose<'de, V: Visitor<'de>>(&'de self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(word) => visitor.visit_enum(name(word)),
            Value::Table(entries) => match entries.as_slice() {
                [entry] => visitor.visit_enum(Choice { entry }),
                _ => Err(Fault::wrong_type()),
            },
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Date(_)
            | Value::List(_) => Err(Fault::wrong_type()),
        }
    }
}

/// A key or word as serde reads one.
fn name(text: &str) -> StrDeserializer<'_, Fault> {
    text.into_deserializer()
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(visitor).map_err(|fault| fault.at_node(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Table(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// Derived code would take a list for the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: Names,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.value {
            Value::Table(_) => self.deserialize_any(visitor),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Date(_)
            | Value::List(_) => Err(Fault::wrong_type().at_node(self)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: Names,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.choose(visitor).map_err(|fault| fault.at_node(self))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'de> {
    items: &'de [Node],
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let index = self.index;
        let Some(item) = self.items.get(index) else { return Ok(None) };
        self.index += 1;
        let beneath = |fault: Fault| fault.at_node(item).beneath(Step::Index(index));
        seed.deserialize(item).map(Some).map_err(beneath)
    }
}

struct Entries<'de> {
    entries: &'de [Entry],
    current: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((entry, rest)) = self.entries.split_first() else { return Ok(None) };
        (self.entries, self.current) = (rest, Some(entry));
        seed.deserialize(name(&entry.name)).map(Some).map_err(|mut fault| {
            fault.at = Some(entry.at);
            fault
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let entry = self.current.take().ok_or_else(|| Fault::custom("a value before its key"))?;
        // A type that reads a text and then refuses it does so outside of the node's own reading.
        let beneath =
            |fault: Fault| fault.at_node(&entry.node).beneath(Step::Key(entry.name.clone()));
        seed.deserialize(&entry.node).map_err(beneath)
    }
}

/// A table with one key, which is the word, and what the word holds.
struct Choice<'de> {
    entry: &'de Entry,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        match seed.deserialize(name(&self.entry.name)) {
            Ok(value) => Ok((value, self)),
            Err(mut fault) => {
                fault.at = Some(self.entry.at);
                if let What::UnknownWord { word: name, allowed: known } = fault.what {
                    fault.what = What::UnknownKey { name, known };
                }
                Err(fault)
            }
        }
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = Fault;

    /// A word that holds nothing is written as the word alone.
    fn unit_variant(self) -> Result<(), Fault> {
        Err(Fault::wrong_type())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        let beneath = |fault: Fault| fault.beneath(Step::Key(self.entry.name.clone()));
        seed.deserialize(&self.entry.node).map_err(beneath)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.struct_variant(&[], visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, names: Names, visitor: V) -> Result<V::Value, Fault> {
        let beneath = |fault: Fault| fault.beneath(Step::Key(self.entry.name.clone()));
        self.entry.node.deserialize_struct("", names, visitor).map_err(beneath)
    }
}
