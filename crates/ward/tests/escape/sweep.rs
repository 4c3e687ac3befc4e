//! What a command makes new that would run by itself is set aside before anybody can meet it.
//!
//! Each attack plants a program in a repository that it makes itself. Afterwards the person goes
//! there with git, as they would; what was planted leaves a file if it runs.

use crate::check::Seen;
use crate::scene::{Scene, tools};

checks! {
    a_hook_in_a_new_repository_does_not_run:
        Anyone, Without("sweep"), Hold, hook;
    a_hook_behind_a_linked_folder_does_not_run:
        Anyone, Without("sweep"), Hold, hook_behind_a_link;
    a_hook_in_a_folder_that_cannot_be_listed_does_not_run:
        Unprivileged, Without("sweep"), Hold, hook_out_of_sight;
    a_hook_in_a_bare_repository_does_not_run:
        Anyone, Without("sweep"), Hold, hook_in_bare;
    a_hook_in_a_bare_repository_behind_a_link_does_not_run:
        Anyone, Without("sweep"), Hold, hook_in_bare_behind_a_link;
    a_hooks_path_does_not_count:
        Anyone, Without("sweep"), Hold, hooks_path;
    a_file_system_monitor_does_not_run:
        Anyone, Without("sweep"), Hold, |scene| config(scene, "[core]\n\tfsmonitor = PLANTED\n");
    settings_in_a_second_section_on_one_line_do_not_count:
        Anyone, Without("sweep"), Hold, |scene| config(scene, "[x][core]fsmonitor = PLANTED\n");
    settings_after_a_byte_order_mark_do_not_count:
        Anyone, Without("sweep"), Hold, byte_order_mark;
    settings_after_a_line_that_goes_on_do_not_count:
        Anyone, Without("sweep"), Hold,
        |scene| config(scene, "[core]\n\tx = a\\\n[foo]\n\tfsmonitor = PLANTED\n");
    settings_behind_a_link_do_not_count:
        Anyone, Without("sweep"), Hold, config_behind_a_link;
    settings_of_a_worktree_do_not_count:
        Anyone, Without("sweep"), Hold, worktree_config;
    settings_that_are_included_do_not_count:
        Anyone, Without("sweep"), Hold, included;
    a_remote_that_is_a_program_does_not_run:
        Anyone, Without("sweep"), Hold, remote_program;
    a_filter_does_not_run:
        Anyone, Without("sweep"), Hold, filter;
    a_repository_in_two_halves_is_one:
        Anyone, Without("sweep"), Hold, two_halves;
    a_second_half_of_the_workspaces_own_repository_does_not_count:
        Anyone, Without("sweep"), Hold, common_folder;
    a_repository_inside_a_repository_is_one:
        Anyone, Without("sweep"), Hold, inside_a_repository;
    a_new_envrc_is_set_aside:
        Anyone, Without("sweep"), Hold, |scene| made(scene, ".envrc", "echo");
    new_editor_tasks_are_set_aside:
        Anyone, Without("sweep"), Hold, |scene| made(scene, "deep/.vscode/tasks.json", "{}");
    new_instructions_for_agents_are_set_aside:
        Anyone, Without("sweep"), Hold, |scene| made(scene, "AGENTS.md", "obey");
    new_settings_of_an_agent_are_set_aside:
        Anyone, Without("sweep"), Hold, |scene| made(scene, ".claude/settings.json", "{}");
}

/// Plants by a shell line in which `PLANTED` is a program that leaves a trace; then goes to the
/// folder with git, on the host.
fn planted(scene: &Scene, line: &str, place: &str, git: &str) -> Seen {
    let trace = scene.word("outside/trace");
    scene.file(
        "work/planted",
        &format!("#!/bin/sh\ntouch {trace}\nexit 1\n"),
    );
    let program = scene.word("work/planted");
    scene.sh(&format!(
        "set -e; chmod +x planted; {}",
        line.replace("PLANTED", &program)
    ));
    let git = "git -c user.name=a -c user.email=a@b.c -c safe.directory=* ".to_owned() + git;
    let _ = scene
        .on_host(&["sh", "-c", &git])
        .current_dir(scene.path(place))
        .output();
    Seen::escape_if(scene.path("outside/trace").exists())
}

const COMMIT: &str = "commit -q --allow-empty -m x";

fn hook(scene: &Scene) -> Seen {
    let line = "git init -q new; cp planted new/.git/hooks/pre-commit";
    planted(scene, line, "work/new", COMMIT)
}

fn hook_behind_a_link(scene: &Scene) -> Seen {
    let line = "git init -q new; rm -rf new/.git/hooks; mkdir h; cp planted h/pre-commit; ln -s ../../h new/.git/hooks";
    planted(scene, line, "work/new", COMMIT)
}

fn hook_out_of_sight(scene: &Scene) -> Seen {
    let line = "git init -q new; cp planted new/.git/hooks/pre-commit; chmod 0311 new/.git/hooks";
    planted(scene, line, "work/new", COMMIT)
}

fn hook_in_bare(scene: &Scene) -> Seen {
    let line = "git init -q --bare new; cp planted new/hooks/pre-commit";
    planted(scene, line, "work/new", &format!("--work-tree=. {COMMIT}"))
}

fn hook_in_bare_behind_a_link(scene: &Scene) -> Seen {
    let line = "git init -q --bare new; rm -rf new/hooks; mkdir h; cp planted h/pre-commit; ln -s ../h new/hooks";
    planted(scene, line, "work/new", &format!("--work-tree=. {COMMIT}"))
}

fn hooks_path(scene: &Scene) -> Seen {
    let line = "git init -q new; mkdir h; cp planted h/pre-commit; git -C new config core.hooksPath $PWD/h";
    planted(scene, line, "work/new", COMMIT)
}

/// Appends to the settings of a new repository.
fn config(scene: &Scene, text: &str) -> Seen {
    let text = text.replace("PLANTED", &scene.word("work/planted"));
    scene.file("work/settings", &text);
    let line = "git init -q new; cat settings >>new/.git/config";
    planted(scene, line, "work/new", "status")
}

fn byte_order_mark(scene: &Scene) -> Seen {
    let line = "git init -q new; printf '\\357\\273\\277[core]\\n\\tfsmonitor = PLANTED\\n' >new/.git/config";
    planted(scene, line, "work/new", "status")
}

fn config_behind_a_link(scene: &Scene) -> Seen {
    let line = "git init -q new; mv new/.git/config c; printf '\\tfsmonitor = PLANTED\\n' >>c; ln -s ../../c new/.git/config";
    planted(scene, line, "work/new", "status")
}

fn worktree_config(scene: &Scene) -> Seen {
    let line = "git init -q new; git -C new config extensions.worktreeConfig true; \
                printf '[core]\\n\\tfsmonitor = PLANTED\\n' >new/.git/config.worktree";
    planted(scene, line, "work/new", "status")
}

fn included(scene: &Scene) -> Seen {
    let line = "git init -q new; printf '[core]\\n\\tfsmonitor = PLANTED\\n' >more; \
                printf '[include]\\n\\tpath = ../../more\\n' >>new/.git/config";
    planted(scene, line, "work/new", "status")
}

fn remote_program(scene: &Scene) -> Seen {
    let line = "git init -q new; git -C new config protocol.ext.allow always; \
                git -C new remote add origin ext::PLANTED";
    planted(scene, line, "work/new", "fetch")
}

fn filter(scene: &Scene) -> Seen {
    let line = "git init -q new; echo '* filter=f' >new/.gitattributes; \
                git -C new config filter.f.clean PLANTED";
    planted(scene, line, "work/new", "add .gitattributes")
}

/// Git takes settings and hooks from where `commondir` points, and only the head from here.
fn two_halves(scene: &Scene) -> Seen {
    let line = "mkdir -p new half other/objects other/refs; echo 'ref: refs/heads/main' >half/HEAD; \
                echo ../other >half/commondir; echo 'gitdir: ../half' >new/.git; \
                printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = PLANTED\\n' >other/config";
    planted(scene, line, "work/new", "status")
}

fn common_folder(scene: &Scene) -> Seen {
    let made = scene.on_host(&["git", "init", "-q"]).status().unwrap();
    assert!(made.success());
    let line = "mkdir -p other/objects other/refs; echo ../other >.git/commondir; \
                printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = PLANTED\\n' >other/config";
    planted(scene, line, "work", "status")
}

fn inside_a_repository(scene: &Scene) -> Seen {
    let made = scene.on_host(&["git", "init", "-q"]).status().unwrap();
    assert!(made.success());
    let line = "git init -q new; mv new/.git .git/more; printf '\\tfsmonitor = PLANTED\\n' >>.git/more/config; \
                echo 'gitdir: ../.git/more' >new/.git";
    planted(scene, line, "work/new", "status")
}

/// Made, it is not there afterwards; and what was set aside can be put back.
fn made(scene: &Scene, name: &str, text: &str) -> Seen {
    scene.sh(&format!(
        "mkdir -p $(dirname {name}); printf %s '{text}' >{name}"
    ));
    let there = scene.path("work").join(name).exists();
    if !there {
        put_back(scene);
        assert_eq!(scene.read(&format!("work/{name}")), text);
    }
    Seen::escape_if(there)
}

fn put_back(scene: &Scene) {
    let ward = tools::ward();
    let ward = ward.to_str().unwrap();
    let listed = scene.on_host(&[ward, "aside", "list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let id = listed.split_whitespace().next().unwrap();
    let restored = scene
        .on_host(&[ward, "aside", "restore", id])
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
}
