//! What the probe sees inside, as fields that can be compared one by one. What is another number each
//! time becomes a word; nothing else is left out.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

/// What is asked, and how the answer becomes fields.
pub(super) const QUESTIONS: [&str; 15] = [
    "namespaces",
    "mounts",
    "identity",
    "capabilities",
    "env",
    "fds",
    "own",
    "rlimits",
    "status",
    "list / /dev /run /etc",
    "statfs / /dev /proc /tmp",
    "open w /dev/null /dev/full /dev/kmsg /proc/sys/kernel/core_pattern /usr/bin",
    "loopback",
    // `keyctl`, which the filter of the lines refuses.
    "syscall 250 0 0 0",
    "processes",
];

/// The lines of `status` that say what a process may do or has inherited.
const STATUS: [&str; 9] = [
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
    "ShdPnd",
    "SigBlk",
    "SigIgn",
    "SigCgt",
    "Speculation_Store_Bypass",
    "Umask",
];

/// Names of fields and what stands in them.
pub(super) type View = BTreeMap<String, String>;

/// The fields of the probe's answers to [`QUESTIONS`].
///
/// # Errors
/// Why they are no answers.
pub(super) fn read(text: &str) -> Result<View, String> {
    let answers: Vec<Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if answers.len() != QUESTIONS.len() {
        return Err(format!("{} answers", answers.len()));
    }
    let mut view = View::new();
    let mut shares_pids = false;
    for (question, answer) in QUESTIONS.iter().zip(&answers) {
        let name = question.split(' ').next().unwrap_or(question);
        match name {
            "namespaces" => {
                let spaces = namespaces(answer);
                shares_pids = spaces.get("pid").is_some_and(|whose| whose == "the host's");
                add(&mut view, name, spaces);
            }
            "mounts" => add(&mut view, name, mounts(answer)),
            "env" => add(&mut view, name, environment(answer)),
            "fds" => drop(view.insert(name.to_owned(), answer.to_string())),
            // The host's processes are others each time, and so are their numbers.
            "processes" if !is_fresh(&view) => {}
            "identity" if shares_pids => {
                let mut fields = fields(answer);
                ["pid", "parent", "session", "group"].iter().for_each(|key| {
                    fields.remove(*key);
                });
                add(&mut view, name, fields);
            }
            "status" => {
                let mut fields = fields(answer);
                fields.retain(|key, _| STATUS.contains(&key.as_str()));
                if let Some(ignored) = fields.get_mut("SigIgn") {
                    *ignored = without_library(ignored);
                }
                add(&mut view, name, fields);
            }
            _ => add(&mut view, name, fields(answer)),
        }
    }
    Ok(view)
}

/// Whether the procfs is one of this sandbox's own.
fn is_fresh(view: &View) -> bool {
    view.get("namespaces pid").is_some_and(|whose| whose == "its own")
        && view.iter().any(|(key, value)| {
            key.starts_with("mounts /proc ") && key.ends_with(" device") && value == "new"
        })
}

fn add(view: &mut View, name: &str, fields: View) {
    view.extend(fields.into_iter().map(|(key, value)| (format!("{name} {key}"), value)));
}

/// A tree of answers as paths; what has a name goes by it, and not by its place in a list.
fn fields(answer: &Value) -> View {
    let mut fields = View::new();
    walk(String::new(), answer, &mut fields);
    fields
}

fn walk(path: String, value: &Value, fields: &mut View) {
    let below = |key: &str| match path.is_empty() {
        true => key.to_owned(),
        false => format!("{path} {key}"),
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| walk(below(key), value, fields)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| {
            let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
            walk(below(&name.unwrap_or_else(|| index.to_string())), value, fields);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.insert(path, shown(value));
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn namespaces(answer: &Value) -> View {
    let own = |name: &str| fs::read_link(format!("/proc/self/ns/{name}"));
    let whose = |(name, link): (String, String)| {
        let is_shared = own(&name).is_ok_and(|own| own.as_os_str() == link.as_str());
        let whose = if is_shared { "the host's" } else { "its own" };
        (name, whose.to_owned())
    };
    fields(answer).into_iter().map(whose).collect()
}

/// By target and, where several lie on one another, by which it is.
fn mounts(answer: &Value) -> View {
    let list = answer.as_array().map_or(&[][..], Vec::as_slice);
    let text = |mount: &Value, key: &str| shown(&mount[key]);
    let target_of = |id: &str| {
        let parent = list.iter().find(|mount| text(mount, "id") == id);
        parent.map_or_else(|| "outside".to_owned(), |parent| text(parent, "target"))
    };
    let known = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_host = |device: &str| known.lines().any(|line| line.split(' ').nth(2) == Some(device));
    let mut seen = BTreeMap::new();
    let mut view = View::new();
    for mount in list {
        let target = text(mount, "target");
        let count: &mut usize = seen.entry(target.clone()).or_default();
        *count += 1;
        let device = text(mount, "device");
        let device = if is_host(&device) { device } else { "new".to_owned() };
        // The numbers of peer groups are new each time.
        let tags = mount["tags"].as_array().map_or(&[][..], Vec::as_slice);
        let tags = tags.iter().map(|tag| shown(tag).split(':').next().unwrap_or("").to_owned());
        let mut put = |key: &str, value: String| {
            view.insert(format!("{target} {count} {key}"), value);
        };
        ["root", "options", "kind", "source", "super"]
            .iter()
            .for_each(|key| put(key, unnumbered(&text(mount, key))));
        put("on", target_of(&text(mount, "parent")));
        put("device", device);
        put("tags", tags.collect::<Vec<_>>().join(" "));
    }
    view
}

/// A mask of signals without 32 and 33, which some ways of the C library's to start a program leave
/// ignored and others do not.
fn without_library(mask: &str) -> String {
    let mask = u64::from_str_radix(mask, 16).unwrap_or(0);
    format!("{:016x}", mask & !(0b11 << 31))
}

/// The files of a sandbox's own, and descriptors that are closed by now, have other numbers each time.
fn unnumbered(text: &str) -> String {
    const MARKS: [(&str, usize); 2] = [("/bindfile", 6), ("/proc/self/fd/", 3)];
    let mut text = text.to_owned();
    for (mark, most) in MARKS {
        let mut parts = text.split(mark);
        let mut plain = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let letters = part.chars().take_while(char::is_ascii_alphanumeric).take(most);
            plain.push_str(mark);
            plain.extend(part.chars().skip(letters.count()));
        }
        text = plain;
    }
    text
}

fn environment(answer: &Value) -> View {
    let list = answer.as_array().map_or(&[][..], Vec::as_slice);
    let pairs = list.iter().filter_map(|entry| entry.as_str()?.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mounts_on_one_another_are_told_apart() {
        let mount = |id: &str, parent: &str, target: &str, kind: &str| {
            json!({"id": id, "parent": parent, "device": "0:999999", "root": "/", "target": target,
                "options": "ro", "tags": ["shared:7"], "kind": kind, "source": "x", "super": "rw"})
        };
        let list = json!([
            mount("1", "0", "/", "tmpfs"),
            mount("2", "1", "/a", "proc"),
            mount("3", "2", "/a", "tmpfs")
        ]);
        let view = mounts(&list);
        let rows = [
            ("/ 1 on", "outside"),
            ("/a 1 on", "/"),
            ("/a 1 kind", "proc"),
            ("/a 2 on", "/a"),
            ("/a 2 kind", "tmpfs"),
            ("/a 2 tags", "shared"),
            ("/a 2 device", "new"),
        ];
        for (key, value) in rows {
            assert_eq!(view.get(key).map(String::as_str), Some(value), "{key}");
        }
    }

    #[test]
    fn a_tree_becomes_paths() {
        let view = fields(&json!({"/dev": [{"name": "null", "mode": 438}], "a": {"errno": 2}}));
        let pairs: Vec<_> = view.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(
            pairs,
            [("/dev null mode", "438"), ("/dev null name", "null"), ("a errno", "2")]
        );
    }

    #[test]
    fn what_is_another_each_time_is_left_out() {
        assert_eq!(without_library("0000000180001002"), "0000000000001002");
        let rows = [
            ("/bindfileAbC123//deleted", "/bindfile//deleted"),
            ("/bindfile//deleted", "/bindfile//deleted"),
            ("lowerdir=/proc/self/fd/8:/proc/self/fd/11", "lowerdir=/proc/self/fd/:/proc/self/fd/"),
            ("/bind", "/bind"),
        ];
        for (text, expected) in rows {
            assert_eq!(unnumbered(text), expected);
        }
    }

    #[test]
    fn what_is_no_answer_is_said_to_be_none() {
        assert!(read("bwrap: no").is_err());
        assert_eq!(read("[1]").unwrap_err(), "1 answers");
    }
}
