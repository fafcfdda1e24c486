//! What a directory lies on, by the mounts of this process: whether what is stored there outlives the
//! pod. The operator judges what a spec says; this judges what is really there, whoever mounted it.

use std::path::Path;

use crds::mounts::DESTINATION_MOUNT;
use crds::plan::VOLUMES_DIR;

/// File systems that are the container's own layers.
const LAYERS: [&str; 3] = ["overlay", "fuse.fuse-overlayfs", "aufs"];

/// What `directory` lies on, if that is gone with the pod: the container's own disk or an emptyDir.
/// `mounts` is the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)); the directory's path is
/// without symbolic links.
///
/// A memory file system looks the same whether it is an emptyDir or a volume that the node keeps in
/// memory: where the operator mounted the volume it has judged it, elsewhere it counts as an emptyDir.
pub(super) fn goes_with_pod(directory: &Path, mounts: &str) -> Option<&'static str> {
    let judged = [DESTINATION_MOUNT, VOLUMES_DIR]
        .iter()
        .any(|at| directory.starts_with(at));
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::read).collect();
    let holds = |m: &&Mount| directory.starts_with(&m.point);
    let depth = |m: &&Mount| Path::new(&m.point).components().count();
    // Of several at one point the last is the one that is seen.
    let mount = mounts.iter().filter(holds).max_by_key(depth)?;
    if LAYERS.contains(&mount.kind) {
        return Some("the container's own disk");
    }
    let empty = mount.root.contains("/volumes/kubernetes.io~empty-dir/");
    let memory =
        matches!(mount.kind, "tmpfs" | "ramfs") && !judged && mounts.iter().any(Mount::is_of_pod);
    (empty || memory).then_some(if memory {
        "memory (an emptyDir of medium Memory)"
    } else {
        "an emptyDir"
    })
}

/// One line of mountinfo.
struct Mount<'a> {
    /// Directory of its file system that is mounted.
    root: String,
    /// Where it is mounted.
    point: String,
    /// Type of its file system.
    kind: &'a str,
}

impl<'a> Mount<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        Some(Self {
            root: plain(fields.next()?),
            point: plain(fields.next()?),
            kind: after.split(' ').next()?,
        })
    }

    /// True for the files that a kubelet mounts into every container.
    fn is_of_pod(&self) -> bool {
        matches!(&*self.point, "/etc/hosts" | "/dev/termination-log")
            && self.root.contains("/pods/")
    }
}

/// A field with its octal escapes (blank, tab, line end, backslash) undone.
fn plain(field: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(field.to_owned(), |text, (code, c)| text.replace(code, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a pod of kubelet 1.31 under containerd, with one volume of each kind.
    const POD: &str = "\
612 511 0:85 / / rw,relatime - overlay overlay rw,lowerdir=/x,upperdir=/y
613 612 0:88 / /proc rw,nosuid - proc proc rw
614 612 8:1 /var/lib/kubelet/pods/0b8e/volumes/kubernetes.io~empty-dir/data /mnt rw,relatime - ext4 /dev/sda1 rw
615 612 0:90 / /memory rw,relatime - tmpfs tmpfs rw,size=1024k
616 612 8:1 /var/lib/kubelet/pods/0b8e/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw
617 612 8:1 /var/lib/kubelet/pods/0b8e/containers/backup/1f /dev/termination-log rw - ext4 /dev/sda1 rw
618 612 8:16 / /claim rw,relatime - ext4 /dev/sdb rw
619 612 0:91 /export /nfs rw,relatime - nfs4 nas:/export rw
620 612 8:1 /srv/backups /node rw,relatime - ext4 /dev/sda1 rw
621 618 8:1 /var/lib/kubelet/pods/0b8e/volumes/kubernetes.io~empty-dir/tmp /claim/with\\040blank rw - ext4 /dev/sda1 rw
623 612 0:92 / /backup rw,relatime - tmpfs tmpfs rw,size=1024k
622 612 253:7 /pods/0b8e/volumes/kubernetes.io~empty-dir/own /own rw,relatime - xfs /dev/mapper/kubelet rw
";

    #[test]
    fn t7_what_goes_with_the_pod_is_seen_by_its_mount() {
        let on = |path: &str| goes_with_pod(Path::new(path), POD);
        for stays in [
            "/claim",
            "/claim/a/b",
            "/claim/with",
            "/nfs/x",
            "/node",
            "/backup/app",
        ] {
            assert_eq!(on(stays), None, "{stays}");
        }
        for (path, what) in [
            ("/", "own disk"),
            ("/backups", "own disk"),
            ("/mntx", "own disk"),
            ("/mnt/sql", "emptyDir"),
            ("/own", "emptyDir"),
            ("/memory/a", "memory"),
            ("/claim/with blank/x", "emptyDir"),
        ] {
            assert!(
                on(path).is_some_and(|w| w.contains(what)),
                "{path}: {:?}",
                on(path)
            );
        }
    }

    /// On a host, and in a container that no kubelet made, a memory file system is somebody's choice.
    #[test]
    fn t7_a_host_is_no_pod() {
        let host = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 25 0:27 / /tmp rw,relatime - tmpfs tmpfs rw
";
        for path in ["/backup", "/tmp/x"] {
            assert_eq!(goes_with_pod(Path::new(path), host), None);
        }
        assert_eq!(goes_with_pod(Path::new("/x"), ""), None);
        assert_eq!(goes_with_pod(Path::new("/x"), "nonsense\n\n - \n"), None);
    }
}
