//! An AppArmor profile that grants one executable user namespaces, as text. Loads nothing.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Fix, Place};

/// The profile for this executable, its file and the command that loads it.
pub(super) fn userns(executable: &Path) -> Fix {
    let name = name(executable);
    let attachment = quoted(executable.as_os_str());
    let text = format!(
        "abi <abi/4.0>,\n\
         include <tunables/global>\n\
         \n\
         profile {name} {attachment} flags=(unconfined) {{\n\
         \x20 userns,\n\
         \n\
         \x20 include if exists <local/{name}>\n\
         }}\n"
    );
    let file = format!("/etc/apparmor.d/{name}");
    let command = format!("apparmor_parser -r {file}");
    let what = "allows user namespaces to this executable, whoever starts it and with whatever \
                arguments, and to no other";
    Fix::new(Place::Host, what, text).in_file(file, command)
}

/// A profile's name, which is also a file's: `postern` itself, or `postern.` and the executable's.
fn name(executable: &Path) -> String {
    let own = executable.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    match own.chars().map(plain).collect::<String>().as_str() {
        "postern" | "" => "postern".to_owned(),
        other => format!("postern.{other}"),
    }
}

/// A path as the parser reads it in quotes: nothing in it is a pattern, a variable or an end.
/// See [apparmor.d(5)](https://manpages.debian.org/apparmor.d.5).
fn quoted(path: &OsStr) -> String {
    let mut text = String::from("\"");
    for byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' | b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'^' | b'@' => {
                text.extend(['\\', char::from(*byte)]);
            }
            0x20..0x7f => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            other => drop(write!(text, "\\{other:03o}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_pattern() {
        let rows: [(&[u8], &str); 7] = [
            (b"/usr/bin/postern", r#""/usr/bin/postern""#),
            (b"/opt/my tools/p,#", r#""/opt/my tools/p,#""#),
            (br#"/a"b\c"#, r#""/a\"b\\c""#),
            (b"/a*b?c", r#""/a\*b\?c""#),
            (b"/[x]{y,z}^", r#""/\[x\]\{y,z\}\^""#),
            (b"/@{HOME}/x", r#""/\@\{HOME\}/x""#),
            (b"/a\nb\xff", r#""/a\012b\377""#),
        ];
        for (path, text) in rows {
            assert_eq!(quoted(OsStr::from_bytes(path)), text);
        }
    }

    #[test]
    fn the_profile_names_the_executable_and_its_file() {
        let rows = [
            ("/usr/local/bin/postern", "postern", r#""/usr/local/bin/postern""#),
            ("/usr/bin/python3.11", "postern.python3.11", r#""/usr/bin/python3.11""#),
            ("/srv/my app/run me", "postern.run_me", r#""/srv/my app/run me""#),
        ];
        for (path, name, attachment) in rows {
            let fix = userns(Path::new(path));
            assert_eq!(fix.file, Some(format!("/etc/apparmor.d/{name}")));
            assert_eq!(fix.command, Some(format!("apparmor_parser -r /etc/apparmor.d/{name}")));
            let head = format!("profile {name} {attachment} flags=(unconfined) {{\n  userns,\n");
            assert!(fix.text.contains(&head), "{}", fix.text);
            assert!(fix.text.starts_with("abi <abi/4.0>,\n"), "{}", fix.text);
        }
    }
}
