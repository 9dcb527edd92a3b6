//! The schema against the reader: it describes every key, and takes and refuses what that does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::keys::file;
use super::{EVERYTHING, SandboxProfile};
use crate::profile::file::keys::{KEYS, join};
use crate::profile::schema;

/// What says nothing about validity.
const NOTES: [&str; 6] = ["$schema", "$defs", "title", "description", "default", "format"];

/// Whether a value is valid: the keywords that our schema uses, and no others.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else { return schema == &Value::Bool(true) };
    let valid = |schema: &Value, value: &Value| is_valid(root, schema, value);
    let count = |schemas: &Value| {
        schemas.as_array().unwrap().iter().filter(|schema| valid(schema, value)).count()
    };
    keywords.iter().all(|(keyword, rule)| match (keyword.as_str(), value) {
        ("$ref", _) => valid(target(root, rule), value),
        ("type", _) => is_type(rule, value),
        ("const", _) => rule == value,
        ("enum", _) => rule.as_array().unwrap().contains(value),
        ("oneOf", _) => count(rule) == 1,
        ("anyOf", _) => count(rule) > 0,
        ("items", Value::Array(items)) => items.iter().all(|item| valid(rule, item)),
        ("properties", Value::Object(members)) => members
            .iter()
            .all(|(name, member)| rule.get(name).is_none_or(|schema| valid(schema, member))),
        ("additionalProperties", Value::Object(members)) => {
            let known =
                |name: &str| keywords.get("properties").is_some_and(|own| own.get(name).is_some());
            members.iter().all(|(name, member)| known(name) || valid(rule, member))
        }
        ("required", Value::Object(members)) => {
            rule.as_array().unwrap().iter().all(|name| members.contains_key(name.as_str().unwrap()))
        }
        ("minimum", Value::Number(number)) => number.as_f64() >= rule.as_f64(),
        ("maximum", Value::Number(number)) => number.as_f64() <= rule.as_f64(),
        ("pattern", Value::String(text)) => {
            regex_lite::Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)
        }
        ("items" | "properties" | "additionalProperties" | "required", _) => true,
        ("minimum" | "maximum" | "pattern", _) => true,
        (note, _) if NOTES.contains(&note) => true,
        (other, _) => panic!("the keyword {other} is not understood here"),
    })
}

fn target<'a>(root: &'a Value, reference: &Value) -> &'a Value {
    let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
    root.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere"))
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    };
    rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is))
}

/// Whether the schema takes a profile.
fn takes(value: &Value) -> bool {
    let schema = schema();
    is_valid(&schema, &schema, value)
}

#[test]
fn keywords_mean_what_they_say() {
    let rows = [
        (json!({"type": "integer", "minimum": 0}), json!(0), json!(-1)),
        (json!({"type": ["string", "null"]}), json!(null), json!(1)),
        (json!({"maximum": 5}), json!(5), json!(6)),
        (json!({"const": "a"}), json!("a"), json!("b")),
        (json!({"enum": ["a", "b"]}), json!("b"), json!("c")),
        (json!({"oneOf": [{"minimum": 1}, {"maximum": 1}]}), json!(2), json!(1)),
        (json!({"anyOf": [{"minimum": 2}, {"maximum": 0}]}), json!(2), json!(1)),
        (json!({"items": {"type": "string"}}), json!(["a"]), json!(["a", 1])),
        (json!({"pattern": "^a$"}), json!("a"), json!("b")),
        (json!({"required": ["a"]}), json!({"a": 1}), json!({})),
        (json!({"additionalProperties": false}), json!({}), json!({"a": 1})),
        (json!({"additionalProperties": {"type": "null"}}), json!({"a": null}), json!({"a": 1})),
        (
            json!({"properties": {"a": {"type": "null"}}, "additionalProperties": false}),
            json!({"a": null}),
            json!({"a": 1}),
        ),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}), json!(1), json!(2)),
    ];
    for (schema, good, bad) in rows {
        assert!(is_valid(&schema, &schema, &good), "{schema} {good}");
        assert!(!is_valid(&schema, &schema, &bad), "{schema} {bad}");
    }
}

#[test]
fn the_committed_schema_is_the_one_of_the_types() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/profile.schema.json");
    let text = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "run this test with UPDATE_GOLDEN=1 and read the difference");
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    let toml = |text: &str| toml::from_str::<Value>(text).unwrap();
    let default = SandboxProfile::default().to_json_string().unwrap();
    let mut profiles = vec![toml(EVERYTHING), toml(""), serde_json::from_str(&default).unwrap()];
    profiles.extend(KEYS.iter().map(|key| toml(&file(key))));
    profiles.extend([
        json!({"venv": null}),
        json!({"limits": {"nproc": "unlimited"}}),
        json!({"limits": {"nproc": 18_446_744_073_709_551_615_u64}}),
        json!({"ro_binds": ["/a\\:b:/c\\\\d"]}),
    ]);
    for profile in profiles {
        assert!(takes(&profile), "{profile}");
    }
}

#[test]
fn what_the_schema_refuses_the_reader_refuses() {
    let rows = [
        json!([]),
        json!("a"),
        json!({"nproc": 1}),
        json!({"hostname": 1}),
        json!({"hostname": null}),
        json!({"tmp_bytes": "64M"}),
        json!({"tmp_bytes": -1}),
        json!({"tmp_bytes": 1.5}),
        json!({"proc": "masked_"}),
        json!({"proc": {"masked": {}}}),
        json!({"seccomp": "tight"}),
        json!({"seccomp": 1}),
        json!({"guest_uid": "root"}),
        json!({"guest_uid": null}),
        json!({"guest_gid": -1}),
        json!({"env": {"A": 1}}),
        json!({"env": ["A=b"]}),
        json!({"limits": {"nproc": "many"}}),
        json!({"limits": {"nproc": null}}),
        json!({"limits": {"nproc": -1}}),
        json!({"limits": {"nofile": "unlimited"}}),
        json!({"limits": {"core": 1}}),
        json!({"limits": [1]}),
        json!({"namespaces": {"user": "own"}}),
        json!({"namespaces": {"pid": "host"}}),
        json!({"ro_binds": "/a"}),
        json!({"ro_binds": [1]}),
        json!({"ro_binds": [""]}),
        json!({"ro_binds": ["/a:"]}),
        json!({"ro_binds": ["/a:/b:/c"]}),
        json!({"ro_binds": ["/a\\b"]}),
        json!({"ro_binds": ["/a\\"]}),
        json!({"workspace": "owned"}),
        json!({"workspace": {}}),
        json!({"workspace": {"owned": {}, "directory": {"path": "/a"}}}),
        json!({"workspace": {"owned": {"size": 1}}}),
        json!({"workspace": {"directory": {}}}),
        json!({"workspace": {"directory": {"path": "/a", "access": "open"}}}),
        json!({"mounts": [{}]}),
        json!({"mounts": [{"tmpfs": {}}]}),
        json!({"mounts": [{"tmpfs": {"target": "/a", "mode": "0755"}}]}),
        json!({"mounts": [{"tmpfs": ["/a"]}]}),
        json!({"mounts": [{"bind": {"source": "/a", "target": "/b", "ro": true}}]}),
        json!({"mounts": [{"file": {"target": "/b", "contents": [1]}}]}),
        json!({"mounts": {"dir": {"target": "/b"}}}),
    ];
    for profile in rows {
        assert!(!takes(&profile), "{profile}");
        let read = SandboxProfile::from_json_str(&profile.to_string());
        assert!(read.is_err(), "{profile}");
    }
}

/// What a schema says about a key.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) words: String,
    pub(super) default: Option<Value>,
    pub(super) is_required: bool,
    /// The words that it may be, each with its meaning.
    pub(super) choices: Vec<(String, String)>,
}

/// Every key that the schema knows, by its path.
pub(super) fn known() -> BTreeMap<String, Known> {
    let (schema, mut found) = (schema(), BTreeMap::new());
    collect(&schema, &schema, "", &mut found);
    found
}

fn count(members: &Value) -> usize {
    members.as_object().map_or(0, serde_json::Map::len)
}

/// The words of a type that is one of several.
fn choices(schema: &Value) -> Vec<(String, String)> {
    let choices = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let text = |choice: &Value, keyword| Some(choice.get(keyword)?.as_str()?.to_owned());
    choices
        .filter_map(|choice| Some((text(choice, "const")?, text(choice, "description")?)))
        .collect()
}

fn collect(root: &Value, schema: &Value, path: &str, found: &mut BTreeMap<String, Known>) {
    if let Some(reference) = schema.get("$ref") {
        collect(root, target(root, reference), path, found);
    }
    for choice in ["oneOf", "anyOf"].iter().filter_map(|keyword| schema.get(keyword)) {
        choice.as_array().unwrap().iter().for_each(|schema| collect(root, schema, path, found));
    }
    let items = schema.get("items").map(|items| (format!("{path}[]"), items));
    let others = schema.get("additionalProperties").filter(|others| others.is_object());
    let others = others.map(|others| (join(path, "NAME"), others));
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let members = members.map(|(name, member)| (join(path, name), member));
    for (path, member) in items.into_iter().chain(others).chain(members) {
        // A key that is one of several stands for its table, and is not itself required.
        let is_alone = schema.pointer("/properties").is_some_and(|own| count(own) == 1);
        let words = if is_alone { schema } else { member }.get("description");
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let name = path.rsplit('.').next();
        let known = Known {
            words: words.and_then(Value::as_str).unwrap_or("One of them.").to_owned(),
            default: member.get("default").cloned(),
            is_required: !is_alone && required.map(Value::as_str).any(|other| other == name),
            choices: member.get("$ref").map_or_else(Vec::new, |to| choices(target(root, to))),
        };
        found.insert(path.clone(), known);
        collect(root, member, &path, found);
    }
}

#[test]
fn the_table_of_keys_and_the_schema_know_the_same_keys() {
    let known: BTreeSet<_> = known().into_keys().collect();
    let table: BTreeSet<_> = KEYS.iter().map(|key| key.path.to_owned()).collect();
    assert_eq!(known, table);
}

#[test]
fn descriptions_have_no_links_that_only_rustdoc_follows() {
    let text = schema().to_string();
    for mark in ["[`", "super::", "crate::", "```"] {
        assert!(!text.contains(mark), "{mark}");
    }
    assert!(text.contains("[getrlimit(2)](https://"), "links to pages stay");
}
