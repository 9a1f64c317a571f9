//! Facts that the machine knows of a serial port, apart from the bytes on it.

use base::plain_file;
use std::path::{Path, PathBuf};
use std::{fs, iter};

/// Most processes that are examined.
const PROCESSES_MAX: usize = 65_536;

/// Most links that are followed to a port's name.
const LINKS_MAX: usize = 8;

/// The system's files below a root, which is different in a container and in a test.
#[derive(Clone, Debug)]
pub struct HostSystem {
    /// Usually `/`.
    pub root: PathBuf,
}

impl Default for HostSystem {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }
}

impl HostSystem {
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the name of the group whose members may open a port, if it is not `root`.
    #[must_use]
    pub fn group_of(&self, port: &Path) -> Option<String> {
        let number = group_number(port)?.to_string();
        let groups = plain_file::read_text(self.at("etc/group")).ok()?;
        let name = groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1) == Some(number.as_str())).then(|| name.to_owned())
        });
        name.filter(|name| name != "root")
    }

    /// Returns the serial ports of this machine: on Linux by their persistent names, and those without one.
    #[must_use]
    pub fn ports(&self) -> Vec<PathBuf> {
        if !cfg!(target_os = "linux") {
            return link::serial::ports();
        }
        let by_id = list(&self.at("dev/serial/by-id"));
        let targets: Vec<PathBuf> = by_id.iter().filter_map(|p| p.canonicalize().ok()).collect();
        let unnamed = list(&self.at("dev")).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            is_adapter(&name) && !targets.contains(path)
        });
        by_id.iter().cloned().chain(unnamed).collect()
    }

    /// Returns name and id of the processes that have a port open, as far as this user may see. The
    /// program at the far side of a pseudo-terminal is the device, and is left out.
    #[must_use]
    pub fn users_of(&self, port: &Path) -> Vec<(String, u32)> {
        let Ok(port) = port.canonicalize() else {
            return Vec::new();
        };
        let own = std::process::id();
        let others = self.processes().filter(|id| *id != own);
        others
            .filter(|id| {
                let files = list(&self.at(&format!("proc/{id}/fd")));
                let links = || {
                    files
                        .iter()
                        .filter_map(|file| Some((file, fs::read_link(file).ok()?)))
                };
                let is_device = |(file, target): (&PathBuf, PathBuf)| {
                    target.ends_with("ptmx") && self.is_far_side(*id, file, &port)
                };
                links().any(|(_, target)| target == port) && !links().any(is_device)
            })
            .map(|id| (self.name_of(id), id))
            .collect()
    }

    /// Returns whether this file of a process is the far side of a pseudo-terminal.
    fn is_far_side(&self, process: u32, master: &Path, port: &Path) -> bool {
        let name = master.file_name().unwrap_or_default().to_string_lossy();
        let info = self.at(&format!("proc/{process}/fdinfo/{name}"));
        let info = plain_file::read_text(info).unwrap_or_default();
        let mut lines = info.lines();
        let index = lines.find_map(|line| line.strip_prefix("tty-index:"));
        index.is_some_and(|index| port == Path::new("/dev/pts").join(index.trim()))
    }

    /// Returns whether the system knows a path as a serial port or a pseudo-terminal by its name, or by
    /// the name that it links to.
    #[must_use]
    pub fn is_terminal(&self, port: &Path) -> bool {
        let is_pseudo = || {
            let path = port.canonicalize();
            path.is_ok_and(|path| path.starts_with("/dev/pts"))
        };
        let is_known = |name| self.at(&format!("sys/class/tty/{name}")).exists();
        is_pseudo() || self.tty(port).is_some_and(is_known)
    }

    /// Returns ModemManager's process id, if it runs and may send modem commands to this port.
    #[must_use]
    pub fn modem_manager(&self, port: &Path) -> Option<u32> {
        let name = self.tty(port)?;
        if !is_adapter(&name) {
            return None;
        }
        let process = self
            .processes()
            .find(|id| self.name_of(*id) == "ModemManager")?;
        let number = plain_file::read_text(self.at(&format!("sys/class/tty/{name}/dev"))).ok();
        let number = number.unwrap_or_default();
        let udev_path = self.at(&format!("run/udev/data/c{}", number.trim()));
        let ignored = plain_file::read_text(udev_path)
            .is_ok_and(|text| text.contains("ID_MM_DEVICE_IGNORE=1"));
        (!ignored).then_some(process)
    }

    /// Returns the time for which an FTDI adapter gathers bytes before it passes them on, in milliseconds.
    #[must_use]
    pub fn latency_timer_ms(&self, port: &Path) -> Option<u64> {
        let name = self.tty(port)?;
        let path = self.at(&format!("sys/class/tty/{name}/device/latency_timer"));
        plain_file::read_text(path).ok()?.trim().parse().ok()
    }

    /// Returns the kernel's name of a port: the first along its links that the system knows, or the last.
    fn tty(&self, port: &Path) -> Option<String> {
        let link_target = |path: &PathBuf| Some(path.parent()?.join(fs::read_link(path).ok()?));
        let mut chain = iter::successors(Some(port.to_path_buf()), link_target).take(LINKS_MAX);
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let mut last = None;
        chain
            .find_map(|path| {
                last = name(&path);
                let tty_name = last.clone()?;
                let folder = self.at(&format!("sys/class/tty/{tty_name}"));
                folder.exists().then_some(tty_name)
            })
            .or(last)
    }

    fn processes(&self) -> impl Iterator<Item = u32> {
        let all = list(&self.at("proc")).into_iter().take(PROCESSES_MAX);
        all.filter_map(|path| path.file_name()?.to_str()?.parse().ok())
    }

    fn name_of(&self, process: u32) -> String {
        let name = plain_file::read_text(self.at(&format!("proc/{process}/comm")));
        name.unwrap_or_default().trim().to_owned()
    }
}

/// Returns whether a terminal of this name is a USB adapter.
fn is_adapter(name: &str) -> bool {
    ["ttyACM", "ttyUSB"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

/// Lists a folder in order; empty if it does not exist or may not be read.
fn list(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(unix)]
fn group_number(port: &Path) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::gid(
        &fs::metadata(port).ok()?,
    ))
}

#[cfg(not(unix))]
const fn group_number(_: &Path) -> Option<u32> {
    None
}
