//! What holds a sandbox: facts of its launch, and what the kernel says of its first run.

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use postern_seccomp::Digest;

use crate::attest::{Attestation, Expected};
use crate::cgroup::{CgroupGap, Tree};
use crate::host::{LandlockSupport, Release};
use crate::launch::{ImageSource, Launcher, NO_KEYRINGS, fact_names};
use crate::plan::{CgroupLimit, Landlock, NamespaceSet, Plan, Tier, Warning};
use crate::quota::{Circumstances, Quota, group_quotas, quotas};

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
    /// The Landlock domain of every run, or why there is none.
    pub landlock: LandlockUse,
    /// The level of the system-call filter.
    pub seccomp: postern_seccomp::Level,
    /// The SHA-256 of the filter's program; none without one.
    pub seccomp_digest: Option<Digest>,
    /// The SHA-256 of the program of the profile's own policy, where it has one.
    pub seccomp_policy_digest: Option<Digest>,
    /// The control group of the sandbox, in which each run has one of its own; `None` where the
    /// profile asks for no limit of a run as a whole, or none can be held here: `cgroup_gaps`.
    pub cgroup: Option<PathBuf>,
    /// Limits of a run as a whole that cannot be held here, and why.
    pub cgroup_gaps: Vec<(CgroupLimit, CgroupGap)>,
    /// Every limit of what a run may use up, and why one is not enforced here.
    pub quotas: Vec<Quota>,
    /// Where the launcher came from.
    pub launcher: ImageSource,
    /// What the launcher could not do as usual and did otherwise, or could not lower.
    pub fallbacks: Vec<&'static str>,
    /// What is weaker than the default promise.
    pub warnings: Vec<Warning>,
    /// What the kernel said of the sandbox's first run before its program was started, or of the
    /// run that [`Sandbox::verify`](crate::Sandbox::verify) made; `None` before either.
    pub attestation: Option<Arc<Attestation>>,
    /// Filters around the service when it started the launcher.
    pub(crate) outer_filters: Option<u32>,
}

/// Whether Landlock is a second wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandlockUse {
    /// Every process of a run is in one domain of this version, which is 6 at most.
    Domain {
        /// The version of the interface that was used.
        abi: u32,
    },
    /// The profile does without.
    Off,
    /// There is none to use here.
    Unavailable(LandlockSupport),
}

impl LandlockUse {
    /// The version that was used.
    #[must_use]
    pub const fn abi(self) -> Option<u32> {
        match self {
            Self::Domain { abi } => Some(abi),
            Self::Off | Self::Unavailable(_) => None,
        }
    }
}

impl From<&Landlock> for LandlockUse {
    fn from(planned: &Landlock) -> Self {
        match planned {
            Landlock::Domain { abi, .. } => Self::Domain { abi: *abi },
            Landlock::Off => Self::Off,
            Landlock::Unavailable(found) => Self::Unavailable(*found),
        }
    }
}

impl fmt::Display for LandlockUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain { abi } => write!(f, "ABI {abi}"),
            Self::Off => f.write_str("off"),
            Self::Unavailable(LandlockSupport::Abi(abi)) => {
                write!(f, "none: ABI {abi} forbids renames from one directory to another")
            }
            Self::Unavailable(found) => write!(f, "none: {found}"),
        }
    }
}

impl Enforcement {
    pub(crate) fn new(
        plan: &Plan,
        launcher: &Launcher,
        seccomp_digest: Option<Digest>,
        cgroup: Option<&Tree>,
    ) -> Enforcement {
        let later = cgroup.map(Tree::gaps).unwrap_or_default();
        let cgroup_gaps: Vec<_> = plan.cgroup_gaps.iter().chain(later).cloned().collect();
        let passed_over = launcher.passed_over.iter().map(|source| source.passed_over());
        let here = Circumstances {
            facts: launcher.facts,
            kernel_uid: launcher.ids.uid,
            release: Release::own(),
        };
        Enforcement {
            tier: plan.identity.tier,
            namespaces: plan.namespaces,
            kernel_uid: launcher.ids.uid,
            kernel_gid: launcher.ids.gid,
            shared_uid: plan.identity.why_shared.is_some(),
            shared_groups: plan.identity.shared_groups.clone(),
            landlock: LandlockUse::from(&plan.landlock),
            seccomp: plan.seccomp,
            seccomp_digest,
            seccomp_policy_digest: plan.seccomp_policy.as_ref().map(|own| own.program().digest()),
            quotas: quotas(plan, here)
                .into_iter()
                .chain(group_quotas(plan, &cgroup_gaps))
                .collect(),
            cgroup: cgroup.map(|tree| tree.path().to_owned()),
            cgroup_gaps,
            launcher: launcher.image,
            fallbacks: passed_over.chain(fact_names(launcher.facts)).collect(),
            warnings: plan.warnings.clone(),
            attestation: None,
            outer_filters: launcher.outer_filters,
        }
    }

    /// Why a run has no control group.
    pub(crate) fn why_no_group(&self) -> &'static str {
        match self.cgroup_gaps.first() {
            Some((_, gap)) => gap.reason(),
            None => "the profile asks for no limit of a run as a whole",
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

    /// The same with what the kernel said.
    pub(crate) fn with_attestation(&self, attestation: Attestation) -> Arc<Enforcement> {
        let attestation = Some(Arc::new(attestation));
        Arc::new(Enforcement { attestation, ..self.clone() })
    }

    /// What an attestation is compared with besides the plan.
    pub(crate) fn expected(&self) -> Expected {
        let no_keyrings = fact_names(NO_KEYRINGS);
        Expected {
            kernel_uid: self.kernel_uid,
            kernel_gid: self.kernel_gid,
            outer_filters: self.outer_filters,
            exists: Path::exists,
            has_keyrings: !self.fallbacks.iter().any(|name| no_keyrings.contains(name)),
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
            seccomp: postern_seccomp::Level::Default,
            seccomp_digest: None,
            seccomp_policy_digest: None,
            landlock: LandlockUse::Off,
            cgroup: None,
            cgroup_gaps: Vec::new(),
            quotas: Vec::new(),
            launcher: ImageSource::Memfd,
            fallbacks: Vec::new(),
            warnings: Vec::new(),
            attestation: None,
            outer_filters: None,
        }
    }
}
