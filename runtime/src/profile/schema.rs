//! The JSON Schema of a profile file, from the same types that read one; validates nothing.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Bind, SandboxProfile};

/// The [JSON Schema](https://json-schema.org/draft/2020-12) of a profile file, for editors and
/// for programs that write profiles.
///
/// TOML files have the same shape. What the schema refuses, [`SandboxProfile::from_json_str`]
/// refuses; that refuses more, since the rules about paths, bounds and combinations are not in a
/// schema. `docs/profile.schema.json` is this value.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().with_transform(PlainWords);
    let mut schema = settings.into_generator().into_root_schema_for::<SandboxProfile>();
    let words = "What a user can say about a sandbox; a key that is not set keeps its default.";
    schema.insert("title".to_owned(), "A postern profile".into());
    schema.insert("description".to_owned(), words.into());
    schema.to_value()
}

/// Descriptions without the links that only rustdoc follows.
#[derive(Debug, Clone)]
struct PlainWords;

impl Transform for PlainWords {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(serde_json::Value::String(words)) = schema.get_mut("description") {
            *words = plain(words);
        }
        transform_subschemas(self, schema);
    }
}

/// Links that rustdoc follows by a path of Rust become the name that a file has for the item; a
/// link to a page stays.
fn plain(words: &str) -> String {
    let mut parts = words.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (item, rest) = part.split_once("`]").unwrap_or((part, ""));
        let link = rest.strip_prefix('(').and_then(|link| link.split_once(')'));
        let rest = link.filter(|(path, _)| path.contains("::")).map_or(rest, |(_, rest)| rest);
        plain.extend(["`", &file_name(item), "`", rest]);
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `Root::HostView` is `host_view` in a file.
fn file_name(item: &str) -> String {
    let Some((_, name)) = item.rsplit_once("::") else { return item.to_owned() };
    let mut words = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

impl JsonSchema for Bind {
    fn schema_name() -> Cow<'static, str> {
        "Bind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A host path, or a host path and the place where the guest sees it: \
                            SOURCE or SOURCE:TARGET, a colon within a path as \\: and a backslash \
                            as \\\\.",
            "type": "string",
            "pattern": r"^([^:\\]|\\[:\\])+(:([^:\\]|\\[:\\])+)?$",
        })
    }
}

/// How a file spells an optional limit.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "a shape for the schema, never a value")]
pub(super) enum Limit {
    /// The limit.
    Number(u64),
    /// No limit.
    Word(Unlimited),
}

/// The one word that a limit may be.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "a shape for the schema, never a value")]
pub(super) enum Unlimited {
    /// No limit.
    Unlimited,
}

/// How a file spells the filter's level.
#[derive(Debug)]
pub(super) struct LevelName;

impl JsonSchema for LevelName {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": super::level::NAMES })
    }
}
