//! Which host paths a profile makes interesting; looks at none of them.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{MountSpec, ProcKind, Root, SandboxProfile, Sharing, Workspace, list_binds};
use crate::plan::{DEVICES, ETC_ENTRIES, ROOTS_ALONE, SYSTEM_DIRECTORIES, search_path};

impl SandboxProfile {
    /// The host paths that [`Host::probe`](crate::host::Host::probe) looks at for this profile:
    /// sources, system directories, device nodes, and where mounts would come to lie. A path may
    /// be named more than once. Paths that only a link or a file on the host leads to, as to the
    /// Python interpreter, are not known here.
    pub fn paths_of_interest(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        paths.extend(self.rootfs.iter().cloned());
        paths.extend(self.stubs.iter().cloned());
        paths.extend(DEVICES.iter().map(|device| PathBuf::from(device.path)));
        match self.proc {
            ProcKind::ReadOnly | ProcKind::Masked => {
                paths.extend(ROOTS_ALONE.map(PathBuf::from));
            }
            ProcKind::Minimal | ProcKind::None => {}
        }
        match self.root {
            Root::Curated => {
                let base = self.system_base();
                paths.extend(SYSTEM_DIRECTORIES.iter().map(|name| base.join(name)));
                let etc = base.join("etc");
                paths.extend(ETC_ENTRIES.iter().map(|entry| etc.join(entry)));
            }
            Root::HostView => {
                let fixed = ["/proc", "/dev", "/run", "/tmp", super::WORKSPACE];
                paths.extend(fixed.map(PathBuf::from));
            }
        }
        if self.namespaces.net == Sharing::Shared {
            paths.push(PathBuf::from("/etc/resolv.conf"));
        }
        if let Some(venv) = &self.venv {
            paths.extend(["bin", "bin/python"].map(|name| venv.join(name)));
        }
        if let Workspace::Directory { path, .. } = &self.workspace {
            paths.push(path.clone());
        }
        paths.extend(self.sources().map(|(source, _)| source.to_owned()));
        self.places(&mut paths);
        paths
    }

    /// Where the guest looks for its Python interpreter, in this order.
    pub(crate) fn python_candidates(&self) -> Vec<PathBuf> {
        let program = self.python_program();
        if program.as_os_str().as_bytes().contains(&b'/') {
            return vec![program];
        }
        std::env::split_paths(&search_path(self)).map(|path| path.join(&program)).collect()
    }

    /// Every bind of every field, as source and target.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let listed = list_binds(self).map(|bind| (bind.source, bind.target));
        listed.chain(self.mounts.iter().filter_map(|mount| match mount {
            MountSpec::Bind { source, target, .. } => Some((source.as_path(), target.as_path())),
            MountSpec::Tmpfs { .. }
            | MountSpec::Dir { .. }
            | MountSpec::Symlink { .. }
            | MountSpec::File { .. } => None,
        }))
    }

    /// The host paths behind each target and the working directory, within whichever binds they
    /// may come to lie.
    fn places(&self, paths: &mut Vec<PathBuf>) {
        let mut binds: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
        for (source, target) in self.sources() {
            binds.entry(target).or_default().push(source);
        }
        if let Workspace::Directory { path, .. } = &self.workspace {
            binds.entry(Path::new(super::WORKSPACE)).or_default().push(path);
        }
        let base = self.system_base();
        match self.root {
            Root::HostView => binds.entry(Path::new("/")).or_default().push(base),
            Root::Curated => {}
        }
        let targets = list_binds(self).map(|bind| bind.target);
        let targets = targets.chain(self.mounts.iter().map(MountSpec::target));
        for target in targets.chain(self.cwd.as_deref()) {
            for above in target.ancestors().skip(1) {
                let Ok(rest) = target.strip_prefix(above) else { continue };
                let behind = binds.get(above).into_iter().flatten();
                paths.extend(behind.map(|source| source.join(rest)));
            }
            if let Ok(inside) = target.strip_prefix("/")
                && SYSTEM_DIRECTORIES.iter().any(|name| inside.starts_with(name))
            {
                paths.push(base.join(inside));
            }
        }
    }
}
