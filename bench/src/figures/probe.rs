//! The same questions asked in both worlds, so that a ratio is seen beside what it buys.

use std::collections::BTreeMap;
use std::fs;

use super::Setting;
use crate::measure::Outcome;
use crate::report::Table;
use crate::world::complain;

const SCRIPT: &str = include_str!("probe.sh");

pub(crate) fn probe(setting: &Setting) -> Outcome<Vec<Table>> {
    let guest = ["/bin/sh", "-c", SCRIPT];
    let ours = setting.world.sandbox()?.run(guest)?;
    let peers = setting.world.peer()?.command(guest)?.output()?;
    if !peers.status.success() {
        return Err(complain(&peers));
    }
    let (ours, peers) = (ours.stdout_text(), String::from_utf8_lossy(&peers.stdout));
    let peers: BTreeMap<_, _> = peers.lines().filter_map(|line| line.split_once('=')).collect();
    let mut table = Table::new("the two worlds, from inside", "postern | bwrap");
    for (name, value) in ours.lines().filter_map(|line| line.split_once('=')) {
        let (ours, peers) = (of_host(name, value), of_host(name, peers.get(name).unwrap_or(&"?")));
        table.note(format!("{name:22} {ours:24} | {peers}"));
    }
    Ok(vec![table])
}

/// A namespace, told by whether it is the host's; anything else as it is.
fn of_host(name: &str, value: &str) -> String {
    let Some(kind) = name.strip_prefix("ns ") else { return value.trim().to_owned() };
    match fs::read_link(format!("/proc/self/ns/{kind}")) {
        Ok(own) if own.as_os_str() == value => "THE HOST'S".to_owned(),
        Ok(_) => "its own".to_owned(),
        Err(error) => error.to_string(),
    }
}
