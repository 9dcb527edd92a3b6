//! Made-up machines with Python interpreters in the places where people and tools put them.

use postern::host::{FileFact, VenvConfig};

use crate::hosts::{self, Machine};

/// Debian's own Python.
pub(crate) fn with_python() -> Machine {
    in_path(hosts::debian())
}

/// Puts Python 3.11 where Debian does, and nothing before it in `PATH`.
fn in_path(machine: Machine) -> Machine {
    machine
        .dir("/usr/local")
        .dir("/usr/local/bin")
        .without("/usr/local/bin/python3")
        .file_with("/usr/bin/python3.11", 0o755)
        .link("/usr/bin/python3", "python3.11", "/usr/bin/python3.11")
}

/// A virtual environment in `/opt/analysis-env` whose `bin/python` says `to`, which leads to
/// `canonical`, made from the interpreter in `home`.
fn environment(machine: Machine, to: &str, canonical: &str, home: &str) -> Machine {
    machine
        .dir("/opt/analysis-env")
        .dir("/opt/analysis-env/bin")
        .link("/opt/analysis-env/bin/python", to, canonical)
        .with(|host| {
            let (home, version) = (Some(home.into()), Some((3, 12)));
            host.venv = Some(VenvConfig { home, version });
        })
}

/// Python 3.12 and what belongs to it, installed with this prefix.
fn installed(machine: Machine, prefix: &str, names: &[&str]) -> Machine {
    let at = |path: &str| format!("{prefix}/{path}");
    let above = prefix.match_indices('/').map(|(end, _)| &prefix[..end]);
    let machine = above.skip(1).fold(machine, Machine::dir);
    let machine = machine
        .dir(prefix)
        .dir(&at("bin"))
        .file_with(&at("bin/python3.12"), 0o755)
        .dir(&at("lib"))
        .dir(&at("lib/python3.12"))
        .file(&at("lib/python3.12/os.py"))
        .file(&at("lib/libpython3.12.so.1.0"))
        .listing(prefix, names)
        .listing(
            &at("lib"),
            &["libpython3.12.so", "libpython3.12.so.1.0", "libpython3.9.so.1.0", "python3.12"],
        );
    machine.link(
        &at("lib/libpython3.12.so"),
        "libpython3.12.so.1.0",
        &at("lib/libpython3.12.so.1.0"),
    )
}

/// An installation's own names and nobody else's.
const OWN: [&str; 4] = ["bin", "include", "lib", "share"];

/// Debian with a virtual environment of the system's Python.
pub(crate) fn with_venv() -> Machine {
    environment(with_python(), "/usr/bin/python3", "/usr/bin/python3.11", "/usr/bin")
}

/// The environment's Python was built into a directory of its own.
pub(crate) fn elsewhere() -> Machine {
    let program = "/opt/python3.12/bin/python3.12";
    let machine = installed(with_python(), "/opt/python3.12", &OWN);
    environment(machine, program, program, "/opt/python3.12/bin")
}

/// As uv installs: a link without the last number stands for the newest of them.
pub(crate) fn alias() -> Machine {
    let prefix = "/opt/uv/cpython-3.12.5-linux";
    let machine = installed(with_python(), prefix, &OWN)
        .link("/opt/uv/cpython-3.12-linux", "cpython-3.12.5-linux", prefix)
        .link(
            "/opt/uv/cpython-3.12.5-linux/bin/python3",
            "python3.12",
            "/opt/uv/cpython-3.12.5-linux/bin/python3.12",
        );
    let program = "/opt/uv/cpython-3.12.5-linux/bin/python3.12";
    let to = "/opt/uv/cpython-3.12-linux/bin/python3";
    environment(machine, to, program, "/opt/uv/cpython-3.12-linux/bin")
}

/// `--prefix=/opt`, where other things are too.
pub(crate) fn shared_prefix() -> Machine {
    let machine = installed(with_python(), "/opt", &["analysis-env", "bin", "customers", "lib"]);
    environment(machine, "/opt/bin/python3.12", "/opt/bin/python3.12", "/opt/bin")
}

/// The environment holds a copy of the executable, but not of the library.
pub(crate) fn copies() -> Machine {
    let machine = installed(with_python(), "/opt/python3.12", &OWN);
    let program = "/opt/analysis-env/bin/python";
    let found = "/opt/python3.12/bin/python3.12";
    environment(machine, found, found, "/opt/python3.12/bin").file_with(program, 0o755)
}

/// `--prefix=$HOME`.
pub(crate) fn in_home() -> Machine {
    let names = [".ssh", "bin", "lib", "project"];
    let machine = installed(with_python(), "/home/ada", &names)
        .with(|host| host.homes = vec!["/home/ada".into()]);
    let program = "/home/ada/bin/python3.12";
    environment(machine, program, program, "/home/ada/bin")
}

/// A home that happens to hold nothing but a Python, under another name.
pub(crate) fn in_bare_home() -> Machine {
    let machine = installed(with_python(), "/srv/homes/ada", &OWN)
        .link("/home/ada", "/srv/homes/ada", "/srv/homes/ada")
        .with(|host| host.homes = vec!["/home/ada".into()]);
    let program = "/srv/homes/ada/bin/python3.12";
    environment(machine, program, program, "/srv/homes/ada/bin")
}

/// A directory at the very top, which others will use too.
pub(crate) fn at_the_top() -> Machine {
    let program = "/python/bin/python3.12";
    environment(installed(with_python(), "/python", &OWN), program, program, "/python/bin")
}

/// A conda base: other environments and the package cache lie in it.
pub(crate) fn conda() -> Machine {
    let program = "/opt/conda/bin/python3.12";
    let names = ["bin", "conda-meta", "envs", "lib", "pkgs", "ssl"];
    let machine = installed(with_python(), "/opt/conda", &names).dir("/opt/conda/ssl");
    environment(machine, program, program, "/opt/conda/bin")
}

/// Nix, where the interpreter's libraries are other packages.
pub(crate) fn in_store() -> Machine {
    let prefix = "/nix/store/0abc-python3-3.12.5";
    let program = "/nix/store/0abc-python3-3.12.5/bin/python3.12";
    let machine = installed(with_python(), prefix, &OWN);
    environment(machine, program, program, "/nix/store/0abc-python3-3.12.5/bin")
}

/// The sandbox has a `/tmp` of its own.
pub(crate) fn in_tmp() -> Machine {
    let program = "/tmp/python/bin/python3.12";
    let machine = installed(with_python(), "/tmp/python", &OWN);
    environment(machine, program, program, "/tmp/python/bin")
}

/// An executable with nothing around it.
pub(crate) fn alone() -> Machine {
    let program = "/opt/tools/bin/python3.12";
    let machine = with_python().dir("/opt/tools").dir("/opt/tools/bin").file_with(program, 0o755);
    environment(machine, program, program, "/opt/tools/bin")
}

/// The interpreter was taken away by an upgrade.
pub(crate) fn dangling() -> Machine {
    elsewhere()
        .without("/opt/python3.12")
        .fact("/opt/analysis-env/bin/python", leads_to("/opt/python3.12/bin/python3.12"))
}

/// The rootfs has another Python than the environment was made from.
pub(crate) fn dangling_in_rootfs() -> Machine {
    rootfs_with("python3.9", "/usr/bin/python3.11")
}

/// The rootfs has the Python that the environment names; the host has another one there.
pub(crate) fn rootfs() -> Machine {
    rootfs_with("python3.9", "/usr/bin/python3")
}

fn rootfs_with(program: &str, to: &str) -> Machine {
    let at = |name: &str| format!("/opt/guest-root/usr/bin/{name}");
    in_path(hosts::with_rootfs())
        .dir("/opt/analysis-env")
        .dir("/opt/analysis-env/bin")
        .fact("/opt/analysis-env/bin/python", leads_to(to))
        .dir("/opt/guest-root/usr/local")
        .without("/opt/guest-root/usr/local/bin")
        .without("/opt/guest-root/usr/bin/python3.11")
        .file_with(&at(program), 0o755)
        .link(&at("python3"), program, &at(program))
}

/// The rootfs has the installation, in a directory that is no system directory.
pub(crate) fn elsewhere_in_rootfs() -> Machine {
    installed(rootfs(), "/opt/guest-root/opt/python3.12", &OWN)
        .fact("/opt/analysis-env/bin/python", leads_to("/opt/python3.12/bin/python3.12"))
}

fn leads_to(link: &str) -> FileFact {
    FileFact::Dangling { link: link.into() }
}

/// Nobody but root may run the interpreter.
pub(crate) fn for_root() -> Machine {
    elsewhere().file_with("/opt/python3.12/bin/python3.12", 0o700)
}

/// Nobody but root may look into the installation.
pub(crate) fn closed() -> Machine {
    let root = hosts::Owned { uid: 0, gid: 0, mode: 0o700 };
    elsewhere().dir_of("/opt/python3.12", root)
}

/// Nobody but root may look into the environment.
pub(crate) fn closed_venv() -> Machine {
    let root = hosts::Owned { uid: 0, gid: 0, mode: 0o700 };
    with_venv().dir_of("/opt/analysis-env", root)
}
