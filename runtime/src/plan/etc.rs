//! The guest's `/etc`: a few generated files and the host entries that ordinary programs look
//! for. Nothing that is not world-readable is carried over, and no name of a host user.

use std::path::Path;

use super::tree::Tree;
use super::{Access, Identity, system};
use crate::error::Refusal;
use crate::host::{FileFact, FileKind, FoundFile};
use crate::profile::{Etc, Field, ProcKind, SandboxProfile, Sharing};

/// The dynamic loader's cache, without which libraries outside its default directories are lost.
const LOADER_CACHE: &str = "ld.so.cache";

/// What is carried over from `/etc` of the host or rootfs, each for a reason.
pub(crate) const ETC_ENTRIES: [&str; 19] = [
    LOADER_CACHE,
    // musl's counterpart of the loader's configuration.
    "ld-musl-x86_64.path",
    // Local time and its name.
    "localtime",
    "timezone",
    // What distribution this is; a link into usr.
    "os-release",
    // Debian's and Fedora's links from /usr/bin/awk and the like to what is installed.
    "alternatives",
    // Certificate authorities and OpenSSL's settings, as Debian, Arch, Alpine and Fedora keep
    // them; private keys lie in none of these.
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "ca-certificates/extracted",
    "crypto-policies",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "pki/ca-trust/extracted",
    // Names of ports and protocols for getservbyname(3) and getprotobyname(3).
    "services",
    "protocols",
    // File types for Python's mimetypes and web servers.
    "mime.types",
    // Fontconfig prints an error on every start without it.
    "fonts",
];

/// Builds `/etc`.
pub(super) fn add(
    tree: &mut Tree<'_>,
    profile: &SandboxProfile,
    identity: &Identity,
    workspace: &Path,
) -> Result<(), Refusal> {
    let field = Field::new("etc");
    tree.dir(field, Path::new("/etc"), 0o755)?;
    match profile.etc {
        Etc::None => carry(tree, profile, LOADER_CACHE),
        Etc::Generated => {
            for (name, contents) in generated(profile, identity, workspace) {
                tree.file(field, &Path::new("/etc").join(name), 0o644, contents.into_bytes())?;
            }
            if profile.proc != ProcKind::None {
                tree.symlink(field, Path::new("/etc/mtab"), Path::new("/proc/self/mounts"))?;
            }
            ETC_ENTRIES.iter().try_for_each(|name| carry(tree, profile, name))?;
            match profile.namespaces.net {
                Sharing::Shared => resolver(tree, field),
                Sharing::Own => Ok(()),
            }
        }
    }
}

/// The generated files. The guest's own entry comes first, so that its uid has its name even
/// where that uid is also nobody's.
fn generated(
    profile: &SandboxProfile,
    identity: &Identity,
    workspace: &Path,
) -> [(&'static str, String); 5] {
    let home = workspace.display();
    let (uid, gid) = (identity.guest_uid, identity.guest_gid);
    let passwd = match uid {
        0 => format!("root:x:0:{gid}:root:{home}:/bin/sh\n"),
        _ => {
            format!("sandbox:x:{uid}:{gid}:sandbox:{home}:/bin/sh\nroot:x:0:0:root:/root:/bin/sh\n")
        }
    };
    let group = match gid {
        0 => "root:x:0:\n".to_owned(),
        _ => format!("sandbox:x:{gid}:\nroot:x:0:\n"),
    };
    let (own_name, dns) = (
        match profile.namespaces.uts {
            Sharing::Own => format!(" {}", profile.hostname),
            Sharing::Shared => String::new(),
        },
        match profile.namespaces.net {
            Sharing::Own => "",
            Sharing::Shared => " dns",
        },
    );
    [
        ("passwd", format!("{passwd}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")),
        ("group", format!("{group}tty:x:5:\nnogroup:x:65534:\n")),
        (
            "hosts",
            format!("127.0.0.1 localhost{own_name}\n::1 localhost ip6-localhost ip6-loopback\n"),
        ),
        (
            "nsswitch.conf",
            format!(
                "passwd: files\ngroup: files\nshadow: files\nhosts: files{dns}\n\
                 networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n"
            ),
        ),
        ("host.conf", "multi on\n".to_owned()),
    ]
}

/// Carries one entry over, if it is there and readable by everybody.
///
/// What lies in `usr` becomes a link there; anything else is bound.
fn carry(tree: &mut Tree<'_>, profile: &SandboxProfile, name: &str) -> Result<(), Refusal> {
    let field = Field::new("etc");
    let path = profile.system_base().join("etc").join(name);
    let Some(FileFact::Found(found)) = tree.host().file(&path) else { return Ok(()) };
    if !is_world_readable(found) {
        return Ok(());
    }
    let target = Path::new("/etc").join(name);
    let usr = system::usr(profile, tree.host())?;
    match found.canonical.strip_prefix(&usr.canonical) {
        Ok(inside) => tree.symlink(field, &target, &Path::new("/usr").join(inside)),
        Err(_) => tree.bind(field, found, &target, Access::ReadOnly),
    }
}

/// A shared network comes with the host's resolver, whatever its file is a link to.
fn resolver(tree: &mut Tree<'_>, field: Field) -> Result<(), Refusal> {
    let path = Path::new("/etc/resolv.conf");
    match tree.host().file(path) {
        Some(FileFact::Found(found)) if is_world_readable(found) => {
            tree.bind(field, found, path, Access::ReadOnly)
        }
        Some(_) | None => Ok(()),
    }
}

/// Readable by a uid that owns nothing.
pub(super) const fn is_world_readable(found: &FoundFile) -> bool {
    let needed = match found.kind {
        FileKind::Dir => 0o005,
        FileKind::Regular => 0o004,
        FileKind::CharDevice { .. } | FileKind::Other => return false,
    };
    found.mode & needed == needed
}
