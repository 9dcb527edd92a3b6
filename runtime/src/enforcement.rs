//! What holds a sandbox, as facts of its launch; `verify` compares them with what the kernel says.

use std::sync::Arc;

use crate::launch::{ImageSource, Launcher, fact_names};
use crate::plan::{KernelId, NamespaceSet, Plan, Tier, Warning};

/// What was enforced on every run of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enforcement {
    /// What kind of host it was.
    pub tier: Tier,
    /// Fresh namespaces of each run, besides user and mount.
    pub namespaces: NamespaceSet,
    /// The guest's uid as the host's kernel sees it.
    pub kernel_uid: u32,
    /// The guest's gid as the host's kernel sees it.
    pub kernel_gid: u32,
    /// Whether that uid is the service's own.
    pub shared_uid: bool,
    /// Supplementary groups that the guest keeps.
    pub shared_groups: Vec<u32>,
    /// The level of the system-call filter.
    pub seccomp: postern_seccomp::Level,
    /// The filter's digest, 0 without one.
    pub seccomp_digest: u64,
    /// Where the launcher came from.
    pub launcher: ImageSource,
    /// What the launcher could not do as usual and did otherwise, or could not lower.
    pub fallbacks: Vec<&'static str>,
    /// What is weaker than the default promise.
    pub warnings: Vec<Warning>,
}

impl Enforcement {
    pub(crate) fn new(plan: &Plan, launcher: &Launcher, seccomp_digest: u64) -> Enforcement {
        let passed_over = launcher.passed_over.iter().map(|source| source.passed_over());
        Enforcement {
            tier: plan.identity.tier,
            namespaces: plan.namespaces,
            kernel_uid: launcher.ids.uid,
            kernel_gid: launcher.ids.gid,
            shared_uid: matches!(plan.identity.kernel_uid, KernelId::Own(_)),
            shared_groups: plan.identity.shared_groups.clone(),
            seccomp: plan.seccomp,
            seccomp_digest,
            launcher: launcher.image,
            fallbacks: passed_over.chain(fact_names(launcher.facts)).collect(),
            warnings: plan.warnings.clone(),
        }
    }

    /// The same with what the launcher had to do for one run.
    pub(crate) fn with_facts(self: &Arc<Enforcement>, facts: u32) -> Arc<Enforcement> {
        let known = |name: &&str| self.fallbacks.contains(name);
        let new: Vec<_> = fact_names(facts).into_iter().filter(|name| !known(name)).collect();
        match new.is_empty() {
            true => Arc::clone(self),
            false => {
                let mut more = Enforcement::clone(self);
                more.fallbacks.extend(new);
                Arc::new(more)
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Enforcement {
        Enforcement {
            tier: Tier::Unprivileged,
            namespaces: NamespaceSet::default(),
            kernel_uid: 1000,
            kernel_gid: 1000,
            shared_uid: true,
            shared_groups: Vec::new(),
            seccomp: postern_seccomp::Level::Compat,
            seccomp_digest: 0,
            launcher: ImageSource::Memfd,
            fallbacks: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
