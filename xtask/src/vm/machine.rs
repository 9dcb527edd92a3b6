//! One machine under qemu: starts it and hands on the lines of its second serial port. Emulated, not
//! virtualised, so that it runs wherever its programs do; its clock is no measure of anything.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::volume::Name;
use crate::command::program;
use crate::failure::Failure;
use crate::watch::{Followed, follow};

/// The program, of package qemu-system-x86.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Runs it until it has powered itself off, line by line.
///
/// # Errors
/// No qemu.
pub(crate) fn run(
    kernel: &Path,
    disks: [&Path; 2],
    console: &Path,
    deadline: Duration,
    line: impl FnMut(&str),
) -> Result<Followed, Failure> {
    let mut command = command(kernel, disks, console);
    command.stdin(Stdio::null());
    follow(command, deadline, line)
}

fn command(kernel: &Path, disks: [&Path; 2], console: &Path) -> Command {
    let mut qemu = program(QEMU);
    qemu.args(["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]);
    qemu.args(["-m", "2048", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    qemu.arg("-kernel").arg(kernel);
    // A panic ends the machine; what else the kernel says goes to the first port alone.
    // A kernel that patches itself while another processor runs the old text is what qemu emulates
    // wrongly now and then: the second one is started when the kernel is done with that.
    let root = Name::System.partition();
    let words = ["console=ttyS0 panic=-1 maxcpus=1 rootfstype=ext4 rootwait rw root=", &root];
    qemu.args(["-append", &words.concat()]);
    qemu.args(["-device", "nvme,serial=postern"]);
    for (disk, number) in disks.iter().zip(1..) {
        // What the guest writes is never seen again.
        let drive = format!("if=none,id=d{number},format=raw,snapshot=on,file={}", disk.display());
        qemu.args(["-drive", &drive, "-device", &format!("nvme-ns,drive=d{number},nsid={number}")]);
    }
    qemu.args(["-serial", &format!("file:{}", console.display()), "-serial", "stdio"]);
    qemu
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_found_by_name_and_stay_as_they_are() {
        let disks = [Path::new("/a"), Path::new("/b")];
        let command = command(Path::new("/k"), disks, Path::new("/c"));
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let drives: Vec<_> = words.iter().filter(|word| word.contains("file=")).collect();
        assert_eq!(drives.len(), 2);
        assert!(drives.iter().all(|drive| drive.contains("snapshot=on")));
        assert!(drives[0].ends_with("file=/a") && drives[1].ends_with("file=/b"));
        // A kernel numbers them as it finds them.
        assert!(words.iter().any(|word| word.ends_with(" root=PARTUUID=50570001-01")));
        assert!(words.iter().any(|word| *word == "file:/c"));
    }
}
