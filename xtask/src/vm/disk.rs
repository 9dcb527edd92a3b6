//! The disk with the guest's system: a small Debian of the packages installed here, kept until
//! something that it is made of is another. How a disk is written is not known here.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::volume::{self, Name};
use crate::cache::{self, Cache};
use crate::command::{lines_of, program, root, start, succeed};
use crate::failure::Failure;

/// What the guest's tests run, by package. The essential packages, and what all of them need, come
/// along.
const PACKAGES: &str = include_str!("../../../tests/vm/packages");

/// The first program of the guest.
const FIRST: &str = include_str!("../../../tests/vm/sbin-init");

/// The directories that are links into `/usr` on a merged system.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// The empty directories that everything is mounted on.
const EMPTY: [&str; 11] =
    ["dev", "home", "mnt", "opt", "postern", "proc", "root", "run", "srv", "sys", "tmp"];

/// What makes the disk, so that a change of it makes another one.
const MAKERS: [&str; 2] = [include_str!("disk.rs"), include_str!("volume.rs")];

/// What the guest's scripts start: without one of them nothing would be tried, or not be told.
const STARTED: [&str; 12] = [
    "bash", "chown", "env", "ip", "ln", "mkdir", "mount", "setpriv", "sh", "sleep", "stty", "uname",
];

/// What one run may add to the first disk; it is gone afterwards.
const FREE_BYTES: u64 = 1 << 30;

/// What makes a disk.
const MAKING: [&str; 1] = ["e2fsprogs"];

/// What this machine needs to make and start a guest.
pub(crate) fn packages() -> Vec<&'static str> {
    MAKING.into_iter().chain(["qemu-system-x86"]).chain(PACKAGES.lines()).collect()
}

/// The disk with the system, made unless the cache has one of the same packages.
///
/// # Errors
/// A package that is not installed, or a machine without dpkg.
pub(crate) fn system(cache: &Cache) -> Result<PathBuf, Failure> {
    let packages = closure(PACKAGES.lines())?;
    let tools = closure(MAKING.into_iter())?;
    let manifest = [&packages[..], &tools, &MAKERS.map(str::to_owned), &[FIRST.to_owned()]];
    let place = cache.path().join(digest(manifest.concat().join("\n").as_bytes())?);
    let file = place.join("system.ext4");
    if !file.exists() {
        cache.fill(&place, |unfinished| {
            let tree = unfinished.join("tree");
            cache::directory(&tree)?;
            populate(&tree, &packages)?;
            check(&tree)?;
            volume::make(&tree, &unfinished.join("system.ext4"), Name::System, FREE_BYTES)?;
            cache::remove(&tree)
        })?;
    }
    Ok(file)
}

/// These packages and what they depend on, as `name version`, sorted.
fn closure<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<String>, Failure> {
    let mut query = program("dpkg-query");
    let format = "${db:Status-Status}\t${Essential}\t${Package}\t${Version}\t${Pre-Depends}, ${Depends}\t${Provides}\n";
    let installed = lines_of(query.args(["--show", "--showformat", format]))?;
    let installed: Vec<Installed> =
        installed.iter().filter_map(|line| Installed::read(line)).collect();
    let mut wanted: Vec<&str> = names.collect();
    if let Some(missing) =
        wanted.iter().find(|name| !installed.iter().any(|one| one.name == **name))
    {
        return Err(Failure::Archive {
            fact: format!(
                "the package {missing} is not installed here: the guest's system is made of it"
            ),
        });
    }
    wanted.extend(installed.iter().filter(|one| one.is_essential).map(|one| &*one.name));
    let mut taken: Vec<&Installed> = Vec::new();
    while let Some(name) = wanted.pop() {
        let found = installed.iter().find(|one| one.is(name));
        let Some(package) = found.filter(|one| !taken.iter().any(|other| other.name == one.name))
        else {
            continue;
        };
        taken.push(package);
        // Of alternatives the one that is installed.
        let is_there = |name: &&str| installed.iter().any(|one| one.is(name));
        wanted.extend(package.depends.iter().filter_map(|any| any.split('|').find(is_there)));
    }
    let mut lines: Vec<String> =
        taken.iter().map(|one| format!("{} {}", one.name, one.version)).collect();
    lines.sort();
    Ok(lines)
}

/// A package of this machine.
struct Installed {
    is_essential: bool,
    name: String,
    version: String,
    /// Each a list of alternatives with `|` between them.
    depends: Vec<String>,
    provides: Vec<String>,
}

impl Installed {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let status = fields.next()?;
        let is_essential = fields.next()? == "yes";
        let (name, version) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let list = |text: &str| -> Vec<String> {
            text.split(", ")
                .map(|any| any.split('|').map(bare).collect::<Vec<_>>().join("|"))
                .collect()
        };
        let (depends, provides) = (list(fields.next()?), list(fields.next().unwrap_or_default()));
        (status == "installed").then_some(Self { is_essential, name, version, depends, provides })
    }

    fn is(&self, name: &str) -> bool {
        self.name == name || self.provides.iter().any(|other| other == name)
    }
}

/// `libc6:any (>= 2.3)` without its architecture and version.
fn bare(one: &str) -> &str {
    one.trim().split([' ', ':']).next().unwrap_or_default()
}

fn digest(bytes: &[u8]) -> Result<String, Failure> {
    let mut sum = program("sha256sum");
    sum.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = sum.spawn().map_err(|source| start(&sum, source))?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(bytes));
    if let Some(Err(source)) = written {
        return Err(start(&sum, source));
    }
    let output = child.wait_with_output().map_err(|source| start(&sum, source))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match text.split_whitespace().next() {
        Some(digest) if output.status.success() => Ok(digest.to_owned()),
        _ => Err(Failure::Ended { command: "sha256sum".to_owned(), status: output.status }),
    }
}

/// The files of the packages, with their owners, and what no package holds.
fn populate(tree: &Path, packages: &[String]) -> Result<(), Failure> {
    for name in MERGED.iter().filter(|name| Path::new("/").join(name).is_symlink()) {
        let target = fs::read_link(Path::new("/").join(name));
        let made = target.and_then(|target| symlink(target, tree.join(name)));
        made.map_err(|source| cache::failure("make", &tree.join(name), source))?;
    }
    for name in EMPTY {
        cache::directory(&tree.join(name))?;
    }
    cache::directory(&tree.join("usr/sbin"))?;
    cache::directory(&tree.join("usr/lib64"))?;
    cache::directory(&tree.join("var/tmp"))?;
    cache::allow(&tree.join("var/tmp"), 0o1777)?;
    let mut list = program("dpkg-query");
    list.arg("--listfiles").args(packages.iter().filter_map(|line| line.split(' ').next()));
    let files = lines_of(&mut list)?.into_iter().filter_map(|path| kept(&path));
    // Packages share directories.
    copy(tree, &files.collect::<BTreeSet<_>>())?;
    alternatives(tree)?;
    let etc = tree.join("etc");
    cache::directory(&etc)?;
    cache::write(&etc.join("passwd"), "root:x:0:0:root:/root:/bin/bash\n")?;
    cache::write(&etc.join("group"), "root:x:0:\n")?;
    cache::write(&etc.join("hostname"), "postern-vm\n")?;
    cache::write(&etc.join("hosts"), "127.0.0.1 localhost\n")?;
    cache::write(&etc.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n")?;
    let first = tree.join("usr/sbin/init");
    cache::write(&first, FIRST)?;
    cache::allow(&first, 0o755)?;
    succeed(program("ldconfig").arg("-r").arg(tree))
}

/// Whether what a guest begins with starts there. The kernel says of a system that lacks it no more
/// than that it has found no init.
fn check(tree: &Path) -> Result<(), Failure> {
    let first = "/sbin/init";
    let script = format!("test -x {first} && for one; do type \"$one\" >&2 || exit 1; done");
    let mut look = program("chroot");
    look.arg(tree).args(["/bin/sh", "-c", &script, first]).args(STARTED);
    look.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let told = look.output().map_err(|source| start(&look, source))?;
    match told.status.success() {
        true => Ok(()),
        false => Err(Failure::Archive {
            fact: format!(
                "the guest's system would not start: {}",
                String::from_utf8_lossy(&told.stderr).lines().last().unwrap_or("there is no init")
            ),
        }),
    }
}

/// A path of a package as it is on this machine, without what no test reads.
fn kept(path: &str) -> Option<String> {
    const LEFT_OUT: [&str; 5] =
        ["/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/."];
    let merged = MERGED.iter().find(|name| {
        let is_below = path.strip_prefix('/').and_then(|path| path.strip_prefix(*name));
        is_below.is_some_and(|rest| rest.starts_with('/')) && Path::new("/").join(name).is_symlink()
    });
    let path = match merged {
        Some(_) => format!("/usr{path}"),
        None => path.to_owned(),
    };
    let is_left_out = LEFT_OUT.iter().any(|start| path.starts_with(start));
    let is_there = fs::symlink_metadata(&path).is_ok();
    (is_there && !is_left_out).then(|| path.trim_start_matches('/').to_owned())
}

/// By tar, which keeps owners, modes, links and capabilities.
fn copy(tree: &Path, files: &BTreeSet<String>) -> Result<(), Failure> {
    let list = tree.with_extension("list");
    cache::write(&list, &files.iter().map(|path| format!("{path}\n")).collect::<String>())?;
    let archive = tree.with_extension("tar");
    let mut pack = program("tar");
    pack.args(["--create", "--no-recursion", "--directory=/", "--sort=name", "--file"])
        .arg(&archive);
    succeed(pack.arg("--files-from").arg(&list))?;
    let mut unpack = program("tar");
    unpack.args(["--extract", "--same-owner", "--preserve-permissions", "--file"]).arg(&archive);
    succeed(unpack.arg("--directory").arg(tree))?;
    cache::remove(&list)?;
    cache::remove(&archive)
}

/// The names that no package holds, such as `awk` and `cc`, where what they stand for is there.
fn alternatives(tree: &Path) -> Result<(), Failure> {
    const CHOSEN: &str = "etc/alternatives";
    cache::directory(&tree.join(CHOSEN))?;
    let chosen = Path::new("/").join(CHOSEN);
    for entry in fs::read_dir(&chosen).into_iter().flatten().flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let is_there = target.strip_prefix("/").is_ok_and(|target| tree.join(target).is_file());
        let name = Path::new("usr/bin").join(entry.file_name());
        let is_program = fs::read_link(Path::new("/").join(&name)).ok() == Some(entry.path());
        if is_there && is_program {
            for (link, target) in
                [(Path::new(CHOSEN).join(entry.file_name()), &target), (name, &entry.path())]
            {
                let link = tree.join(link);
                symlink(target, &link).map_err(|source| cache::failure("make", &link, source))?;
            }
        }
    }
    Ok(())
}

/// The repository's own script that a guest runs first.
pub(crate) fn init() -> PathBuf {
    root().join("tests/vm/init")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_with_its_alternatives() {
        let line = "installed\tyes\tx\t1-2\tlibc6:any (>= 2.3), a (>= 1) | b, c\tmail, y (= 1)";
        let package = Installed::read(line).unwrap();
        assert_eq!(package.depends, ["libc6", "a|b", "c"]);
        assert!(package.is_essential && package.is("x") && package.is("y") && !package.is("c"));
        assert!(Installed::read(&line.replace("installed", "config-files")).is_none());
    }

    #[test]
    fn the_first_program_asks_for_the_other_disk() {
        assert!(FIRST.contains(&Name::Payload.partition()));
        assert!(!FIRST.contains(&Name::System.partition()));
    }

    #[test]
    fn what_packages_need_comes_along() {
        let of = |names: &[&str]| closure(names.iter().copied());
        let lines = of(&["bash"]).unwrap();
        for name in ["bash ", "dash ", "libc6 "] {
            assert!(lines.iter().any(|line| line.starts_with(name)), "{name}: {lines:?}");
        }
        assert!(of(&["no-such-package"]).is_err());
    }

    #[test]
    fn paths_are_the_machines() {
        let merged = Path::new("/bin").is_symlink();
        let bash = if merged { "usr/bin/bash" } else { "bin/bash" };
        assert_eq!(kept("/bin/bash").as_deref(), Some(bash));
        assert_eq!(kept("/usr/share/doc/bash/README"), None);
        assert_eq!(kept("/usr").as_deref(), Some("usr"));
        assert_eq!(kept("/."), None);
        assert_eq!(kept("/usr/no-such-file"), None);
    }
}
