//! Whether a process that talks over Ward's socket is beside Ward: of the same user, on the same
//! machine, with the same files under the same names. A command that is told to it then means there
//! what it means here.
//!
//! The socket alone does not say so: a container may have Ward's data folder and other files.

use std::os::unix::fs::MetadataExt as _;

use tokio::net::unix::UCred;

/// Whether this is such a process. What cannot be looked at is not.
pub(crate) fn is(other: &UCred) -> bool {
    let Some(process) = other.pid().filter(|process| *process > 0) else {
        return false;
    };
    let user = rustix::process::geteuid().as_raw();
    other.uid() == user && sees_the_same(&process.to_string())
}

/// The same mounts, and the same root below which they are.
fn sees_the_same(process: &str) -> bool {
    let mounts = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    let root = |of: &str| {
        let found = std::fs::metadata(format!("/proc/{of}/root")).ok()?;
        Some((found.dev(), found.ino()))
    };
    let same = |own: Option<_>, others: Option<_>| own.is_some() && own == others;
    same(mounts("self"), mounts(process)) && root("self").is_some() && root("self") == root(process)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_of_ours_is_and_one_that_is_not_there_is_not() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(sees_the_same(&child.id().to_string()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!sees_the_same(&child.id().to_string()));
        assert!(!sees_the_same("0"));
    }

    #[test]
    fn a_process_with_other_mounts_is_not() {
        // With a namespace of its own it prints a line, and is then there to be looked at.
        let mut child = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                "echo; cat",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        let read = std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line);
        let beside = sees_the_same(&child.id().to_string());
        child.kill().unwrap();
        child.wait().unwrap();
        // Where namespaces are not to be had, there is nothing to tell apart.
        if read.unwrap() > 0 {
            assert!(!beside);
        }
    }
}
