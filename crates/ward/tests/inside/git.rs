//! Git as it is used, in repositories that were there and in new ones.

use crate::scene::Scene;
use crate::{in_a_room, said};

fn with_identity(scene: &Scene) {
    scene.file(
        "home/.gitconfig",
        "[user]\n\tname = A B\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n",
    );
}

#[test]
fn a_new_repository_takes_commits_branches_merges_and_a_rebase() {
    in_a_room(|scene| {
        with_identity(scene);
        said(
            scene,
            "git init -q -b main r; cd r; \
             echo 1 >a; git add a; git commit -qm one; \
             git switch -qc side; echo 2 >b; git add b; git commit -qm two; \
             git switch -q main; echo 3 >c; git add c; git commit -qm three; \
             git merge -q --no-edit side; \
             git switch -qc more side; echo 4 >d; git add d; git commit -qm four; git rebase -q main; \
             git stash list; git tag v1; git gc -q; git status --porcelain; git worktree add -q ../tree v1",
        );
        assert_eq!(
            said(scene, "cd r; git log -1 --format=%an:%s more"),
            "A B:four"
        );
        assert_eq!(said(scene, "cd r; git rev-list --count more"), "5");
        assert_eq!(
            said(scene, "cd tree; git rev-parse --abbrev-ref HEAD"),
            "HEAD"
        );
        // The host sees the same repository.
        let log = scene
            .on_host(&["git", "-C", "r", "log", "--format=%s", "main"])
            .output()
            .unwrap();
        let log = String::from_utf8(log.stdout).unwrap();
        assert!(log.contains("three") && log.contains("two"), "{log}");
    });
}

#[test]
fn a_repository_of_the_persons_takes_commits_and_a_clone() {
    in_a_room(|scene| {
        with_identity(scene);
        let made = scene
            .on_host(&["git", "init", "-q", "-b", "main"])
            .status()
            .unwrap();
        assert!(made.success());
        said(
            scene,
            "echo 1 >a; git add a; git commit -qm one; git branch side; git clone -q . ../work/copy",
        );
        assert_eq!(said(scene, "git -C copy log --format=%s"), "one");
        assert_eq!(
            said(scene, "git -C copy remote get-url origin"),
            scene.word("work/.")
        );
    });
}

#[test]
fn nothing_that_git_makes_itself_is_set_aside() {
    in_a_room(|scene| {
        with_identity(scene);
        let output = scene.sh(
            "set -e; git init -q r; cd r; git commit -q --allow-empty -m one; git clone -q . ../copy; \
             git clone -q --bare . ../bare; cd ../copy; git -c protocol.file.allow=always submodule add -q $PWD/../bare sub; \
             git commit -qm sub; git worktree add -q ../tree; git remote add more ../bare; git fetch -q more",
        );
        assert!(output.status.success(), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!told.contains("set aside"), "{told}");
        assert!(scene.path("work/copy/sub/.git").exists());
    });
}

#[test]
fn what_the_wall_stopped_is_told_whoever_runs_it() {
    in_a_room(|scene| {
        let made = scene.on_host(&["git", "init", "-q"]).status().unwrap();
        assert!(made.success());
        let line = "echo x >.git/hooks/pre-commit; git remote add o http://x/";
        let output = scene.sh(line);
        let told = String::from_utf8_lossy(&output.stderr);
        let work = scene.path("work").canonicalize().unwrap();
        for path in [".git/hooks/pre-commit", ".git/config"] {
            let stopped = format!("ward: stopped: write to {}\n", work.join(path).display());
            assert!(told.contains(&stopped), "{path}: {told}");
        }
    });
}
