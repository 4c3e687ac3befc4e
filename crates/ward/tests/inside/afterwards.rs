//! Whatever a command leaves in a workspace, the next command runs there; and which folders can be
//! a workspace at all.

use crate::in_a_room;
use crate::scene::{Held, Scene, User, tools};

/// Runs a hostile command, then a plain one.
fn the_next_command_runs_after(line: &str) {
    in_a_room(|scene| {
        scene.sh(line);
        let output = scene.command(&[], &["true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    });
}

#[test]
fn after_protected_names_in_a_folder_whose_name_is_not_text() {
    the_next_command_runs_after("d=$(printf '\\377'); mkdir $d; echo x >$d/AGENTS.md");
}

#[test]
fn after_thousands_of_protected_names() {
    the_next_command_runs_after(
        "for i in $(seq 4000); do mkdir -p node_modules/a-package-of-some-name-$i; \
         : >node_modules/a-package-of-some-name-$i/.travis.yml; done",
    );
}

#[test]
fn after_folders_that_cannot_be_entered_or_listed() {
    the_next_command_runs_after(
        "mkdir a b c; echo x >a/AGENTS.md; echo x >b/AGENTS.md; chmod 444 a; chmod 000 b; chmod 111 c",
    );
}

#[test]
fn after_pipes_and_links_in_the_place_of_settings() {
    the_next_command_runs_after(
        "git init -q r; rm r/.git/config; mkfifo r/.git/config; mkfifo .envrc; ln -s .envrc ward.toml; \
         ln -s loop loop; ln -s nowhere AGENTS.md",
    );
}

#[test]
fn what_is_set_aside_is_named_and_kept_whatever_its_folder_is_called() {
    in_a_room(|scene| {
        let output = scene.sh("d=$(printf '\\377'); mkdir $d; echo x >$d/.envrc");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("set aside"), "{told}");
        let ward = tools::ward();
        let listed = scene
            .on_host(&[ward.to_str().unwrap(), "aside", "list"])
            .output()
            .unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains(".envrc"), "{listed}");
    });
}

#[test]
fn a_folder_with_wards_own_files_is_no_workspace() {
    let scene = Scene::new(User::Current, Held::Room);
    for folder in ["home/.config", "home/.local/state", "home/.local/share"] {
        scene.folder(&format!("{folder}/ward"));
        let output = scene
            .command(&["--workspace", &scene.word(folder)], &["true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125), "{folder}: {output:?}");
    }
}

#[test]
fn a_folder_below_var_tmp_can_be_a_workspace() {
    let scene = Scene::new(User::Current, Held::Room);
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let output = scene
        .command(&[], &["touch", "made"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(folder.path().join("made").exists());
}
