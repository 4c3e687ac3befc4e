//! What is protected inside the workspace: what carries authority, and what runs by itself.

use crate::check::Seen;
use crate::scene::{SECRET, Scene};

/// What walls cannot hold, in the words of docs/sandbox.md.
const OPEN: &str = "protected paths that are there already can be changed";

checks! {
    a_hook_of_the_repository_is_not_written:
        Anyone, Without("protection,sweep"), Hold, hook;
    an_existing_hook_is_not_changed:
        Anyone, Without("protection"), DoNotHold(OPEN), existing_hook;
    the_settings_of_the_repository_are_not_written:
        Anyone, Without("protection"), DoNotHold(OPEN), git_config;
    the_settings_of_a_nested_repository_are_not_written:
        Anyone, Without("protection"), DoNotHold(OPEN), nested_config;
    the_settings_of_a_submodule_are_not_written:
        Anyone, Without("protection"), DoNotHold(OPEN), submodule_config;
    the_settings_of_a_bare_repository_are_not_written:
        Anyone, Without("protection"), DoNotHold(OPEN), bare_config;
    the_repositorys_folder_is_not_moved_away:
        Anyone, Without("protection"), DoNotHold(OPEN), git_moved;
    a_folder_with_a_repository_is_not_moved_away_and_made_anew:
        Anyone, Without("protection,sweep"), Hold, parent_moved;
    a_folder_with_a_hook_is_not_moved_away_and_made_anew:
        Anyone, Without("protection,sweep"), Hold, parent_of_hook_moved;
    a_submodules_link_is_not_pointed_elsewhere:
        Anyone, Without("protection,sweep"), Hold, gitfile_replaced;
    agents_md_is_not_replaced:
        Anyone, Without("protection"), DoNotHold(OPEN), agents_md;
    an_agents_md_that_is_a_link_is_not_replaced:
        Anyone, Without("protection,sweep"), Hold, agents_link;
    wards_own_rules_in_the_workspace_are_not_written:
        Anyone, Without("protection"), DoNotHold(OPEN), ward_toml;
    an_editors_tasks_are_not_written:
        Anyone, Without("protection"), DoNotHold(OPEN), editor_tasks;
    protection_is_not_unmounted:
        Anyone, Without("protection,seccomp,capabilities,landlock"), Unsaid("there is no mount to take away"),
        unmounted;
}

fn repository(scene: &Scene, at: &str) {
    for (name, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", SECRET),
        ("hooks/pre-commit.sample", ""),
        ("hooks/pre-commit", SECRET),
        ("info/exclude", ""),
        ("refs/heads/.keep", ""),
        ("objects/.keep", ""),
    ] {
        scene.file(&format!("work/{at}/{name}"), text);
    }
}

/// Writes by every means a shell has.
fn write_all_ways(scene: &Scene, path: &str) {
    scene.sh(&format!(
        "p={path}; exec 2>/dev/null; echo escaped >$p; echo escaped >>$p; echo escaped >new; mv new $p; \
         echo escaped >new; ln -f new $p; ln -sf $PWD/new $p; cp --remove-destination new $p; \
         rm -f $p; echo escaped >$p; sed -i s/x/escaped/ $p; ln $p twin && echo escaped >twin; \
         chmod 777 $p; truncate -s 0 $p; true"
    ));
}

fn written(scene: &Scene, path: &str) -> Seen {
    write_all_ways(scene, path);
    unlike(scene, path)
}

fn unlike(scene: &Scene, path: &str) -> Seen {
    Seen::escape_if(scene.read(&format!("work/{path}")) != SECRET)
}

fn hook(scene: &Scene) -> Seen {
    repository(scene, ".git");
    scene.sh("exec 2>/dev/null; cp attack .git/hooks/post-checkout; cp attack .git/hooks/../hooks/update; true");
    let there = |name: &str| scene.path(&format!("work/.git/hooks/{name}")).exists();
    Seen::escape_if(there("post-checkout") || there("update"))
}

fn existing_hook(scene: &Scene) -> Seen {
    repository(scene, ".git");
    written(scene, ".git/hooks/pre-commit")
}

fn git_config(scene: &Scene) -> Seen {
    repository(scene, ".git");
    written(scene, ".git/config")
}

fn nested_config(scene: &Scene) -> Seen {
    repository(scene, "vendor/deep/lib/.git");
    written(scene, "vendor/deep/lib/.git/config")
}

fn submodule_config(scene: &Scene) -> Seen {
    repository(scene, ".git");
    repository(scene, ".git/modules/libs/a");
    written(scene, ".git/modules/libs/a/config")
}

fn bare_config(scene: &Scene) -> Seen {
    repository(scene, "mirror.git");
    written(scene, "mirror.git/config")
}

fn git_moved(scene: &Scene) -> Seen {
    repository(scene, ".git");
    scene.sh("mv .git old 2>/dev/null; mkdir -p .git 2>/dev/null; echo escaped 2>/dev/null >.git/config; true");
    unlike(scene, ".git/config")
}

/// The folder above a repository is the command's to move; what it makes in that place is new.
fn parent_moved(scene: &Scene) -> Seen {
    repository(scene, "vendor/lib/.git");
    scene.sh(
        "mv vendor/lib vendor/old; mkdir -p vendor/lib/.git/refs vendor/lib/.git/objects; \
         cp vendor/old/.git/HEAD vendor/lib/.git; \
         printf '[core]\\n\\tfsmonitor = ./escaped\\n' >vendor/lib/.git/config",
    );
    Seen::escape_if(
        scene
            .read("work/vendor/lib/.git/config")
            .contains("fsmonitor"),
    )
}

fn parent_of_hook_moved(scene: &Scene) -> Seen {
    repository(scene, "vendor/lib/.git");
    scene.sh(
        "mv vendor/lib vendor/old; mkdir -p vendor/lib/.git/hooks; cp attack vendor/lib/.git/hooks/pre-commit",
    );
    let hook = scene.read("work/vendor/lib/.git/hooks/pre-commit");
    Seen::escape_if(!hook.is_empty() && hook != SECRET)
}

fn gitfile_replaced(scene: &Scene) -> Seen {
    repository(scene, ".git");
    repository(scene, ".git/modules/a");
    scene.file("work/libs/a/.git", "gitdir: ../../.git/modules/a\n");
    scene.sh(
        "mv libs/a libs/old; mkdir libs/a; git init -q .git/evil 2>/dev/null; mkdir -p .git/evil; \
         echo 'gitdir: ../../.git/evil' >libs/a/.git",
    );
    Seen::escape_if(scene.read("work/libs/a/.git").contains("evil"))
}

fn agents_md(scene: &Scene) -> Seen {
    scene.file("work/AGENTS.md", SECRET);
    written(scene, "AGENTS.md")
}

fn agents_link(scene: &Scene) -> Seen {
    scene.file("work/CLAUDE.md", SECRET);
    std::os::unix::fs::symlink("CLAUDE.md", scene.path("work/AGENTS.md")).unwrap();
    scene.sh("exec 2>/dev/null; rm AGENTS.md; echo escaped >AGENTS.md; true");
    unlike(scene, "AGENTS.md")
}

fn ward_toml(scene: &Scene) -> Seen {
    scene.file("work/ward.toml", SECRET);
    scene.file("work/.ward/roles/dev.md", SECRET);
    write_all_ways(scene, ".ward/roles/dev.md");
    match unlike(scene, ".ward/roles/dev.md") {
        Seen::Escape => Seen::Escape,
        Seen::Nothing => written(scene, "ward.toml"),
    }
}

fn editor_tasks(scene: &Scene) -> Seen {
    scene.file("work/.vscode/tasks.json", SECRET);
    written(scene, ".vscode/tasks.json")
}

fn unmounted(scene: &Scene) -> Seen {
    scene.file("work/AGENTS.md", SECRET);
    scene.attack(&["reopen", "AGENTS.md", "AGENTS.md"]);
    unlike(scene, "AGENTS.md")
}
