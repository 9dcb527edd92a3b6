//! The shape of a policy's JSON, as the crate `seccompiler` reads it; judges nothing.

use core::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The whole text: filters by name, in the order of the text.
#[derive(Debug)]
pub(super) struct Filters(pub(super) Vec<(String, Filter)>);

/// One filter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    #[serde(alias = "default_action")]
    pub(super) mismatch_action: serde_json::Value,
    #[serde(alias = "filter_action")]
    pub(super) match_action: serde_json::Value,
    #[serde(rename = "filter")]
    pub(super) rules: Vec<Rule>,
}

/// One entry of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) syscall: String,
    pub(super) args: Option<Vec<Argument>>,
    pub(super) comment: Option<String>,
}

/// One condition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    pub(super) index: u64,
    #[serde(rename = "type")]
    pub(super) width: Width,
    pub(super) op: Operator,
    pub(super) val: u64,
    #[serde(rename = "comment")]
    pub(super) _comment: Option<String>,
}

/// How much of an argument is looked at.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Width {
    Dword,
    Qword,
}

/// How it is compared.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operator {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    MaskedEq(u64),
    Ne,
}

impl<'de> Deserialize<'de> for Filters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByName)
    }
}

/// Reads a map and refuses a name that comes twice, of which any other reader keeps one.
struct ByName;

impl<'de> Visitor<'de> for ByName {
    type Value = Filters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one filter")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Filters, M::Error> {
        let mut filters: Vec<(String, Filter)> = Vec::new();
        while let Some((name, filter)) = map.next_entry::<String, Filter>()? {
            if filters.iter().any(|(other, _)| *other == name) {
                return Err(M::Error::custom(format_args!("the filter {name:?} comes twice")));
            }
            filters.push((name, filter));
        }
        Ok(Filters(filters))
    }
}
