//! What a caller should know although the launch goes on; decides nothing.

/// Something weaker than the default promise that the host or the profile brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The guest's kernel uid is the service's own.
    SharedUid(u32),
    /// The guest keeps these supplementary groups.
    SharedGroups(Vec<u32>),
    /// The workspace is a directory without a size limit of ours.
    UnboundedWorkspace,
    /// No system-call filter.
    SeccompOff,
    /// The guest shares this namespace with the host's service.
    SharedNamespace(&'static str),
}
