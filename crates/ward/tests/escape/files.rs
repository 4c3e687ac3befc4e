//! Writing outside the wall: plainly, through links, by renaming, into caches.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use crate::check::Seen;
use crate::scene::{SECRET, Scene, tools};

checks! {
    a_file_outside_is_not_written:
        Anyone, Without("root,landlock"), Hold, write_outside;
    a_symbolic_link_out_is_not_written_through:
        Anyone, Without("root,landlock"), Hold, symbolic_link;
    a_hard_link_to_a_file_outside_is_not_made:
        Anyone, Without("root,landlock"), Hold, hard_link;
    nothing_is_moved_in_from_outside_or_out:
        Anyone, Without("root,landlock"), Hold, rename_across;
    nothing_outside_is_deleted_or_truncated:
        Anyone, Without("root,landlock"), Hold, delete;
    mode_and_times_of_a_file_outside_do_not_change:
        Anyone, Without("root"),
        DoNotHold("mode, owner, times and attributes of a file outside can be changed where the user may"),
        mode;
    no_file_is_left_that_runs_as_its_owner:
        Anyone, Without("seccomp"), Hold, set_user_id;
    a_dotfile_of_the_home_folder_is_not_written:
        Anyone, Without("root,landlock"), Hold, dotfile;
    a_package_cache_is_not_written_through:
        Anyone, Without("root,landlock"), Hold, package_cache;
    a_program_in_a_toolchain_is_not_replaced:
        Anyone, Without("root,landlock"), Hold, toolchain;
    wards_own_settings_are_not_written:
        Anyone, Without("root,landlock"), Hold, settings;
    the_program_of_ward_is_not_reached_through_proc:
        Anyone, Without("user,root,network,pids,ipc,landlock,seccomp,capabilities"), Hold, program_of_ward;
    what_a_script_names_as_its_interpreter_is_not_ward:
        Anyone, Without("landlock"), Hold, ward_as_interpreter;
}

fn changed(scene: &Scene, name: &str) -> Seen {
    Seen::escape_if(scene.read(name) != SECRET)
}

fn write_outside(scene: &Scene) -> Seen {
    let (new, old) = (scene.word("outside/new"), scene.word("outside/secret"));
    scene.sh(&format!(
        "for f in {new} {old} ../outside/new /proc/$$/root{new} /proc/1/root{new}; do \
         echo escaped 2>/dev/null >$f; done; mkdir {new}-folder 2>/dev/null; true"
    ));
    let made = scene.path("outside/new").exists() || scene.path("outside/new-folder").exists();
    Seen::escape_if(made || scene.read("outside/secret") != SECRET)
}

fn symbolic_link(scene: &Scene) -> Seen {
    let outside = scene.word("outside");
    scene.sh(&format!(
        "ln -s {outside}/secret file; ln -s {outside} folder; ln -s ../outside near; \
         for f in file folder/new near/new; do echo escaped 2>/dev/null >$f; done; true"
    ));
    let made = scene.path("outside/new").exists();
    Seen::escape_if(made || scene.read("outside/secret") != SECRET)
}

fn hard_link(scene: &Scene) -> Seen {
    let secret = scene.word("outside/secret");
    scene.sh(&format!(
        "ln {secret} linked 2>/dev/null && echo escaped >linked; true"
    ));
    let links = scene.path("outside/secret").metadata().unwrap().nlink();
    Seen::escape_if(links > 1 || scene.read("outside/secret") != SECRET)
}

fn rename_across(scene: &Scene) -> Seen {
    let outside = scene.word("outside");
    scene.sh(&format!(
        "echo x >mine; mv mine {outside}/moved 2>/dev/null; mv {outside}/secret stolen 2>/dev/null; \
         mv {outside} away 2>/dev/null; true"
    ));
    let moved = scene.path("outside/moved").exists() || scene.path("work/stolen").exists();
    Seen::escape_if(moved || !scene.path("outside/secret").exists())
}

fn delete(scene: &Scene) -> Seen {
    let outside = scene.word("outside");
    scene.sh(&format!(
        "truncate -s 0 {outside}/secret 2>/dev/null; rm -rf {outside} 2>/dev/null; true"
    ));
    changed(scene, "outside/secret")
}

fn set_user_id(scene: &Scene) -> Seen {
    scene.attack(&["set-user-id", "lent"]);
    let runs_as_its_owner = |entry: std::io::Result<std::fs::DirEntry>| {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        mode & 0o4000 != 0
    };
    Seen::escape_if(
        std::fs::read_dir(scene.path("work"))
            .unwrap()
            .any(runs_as_its_owner),
    )
}

fn mode(scene: &Scene) -> Seen {
    let secret = scene.word("outside/secret");
    scene.sh(&format!(
        "chmod 666 {secret} 2>/dev/null; touch -d @1 {secret} 2>/dev/null; true"
    ));
    let metadata = scene.path("outside/secret").metadata().unwrap();
    Seen::escape_if(metadata.permissions().mode() & 0o777 == 0o666 || metadata.mtime() == 1)
}

fn dotfile(scene: &Scene) -> Seen {
    scene.file("home/.bashrc", SECRET);
    let home = scene.word("home");
    scene.sh(&format!(
        "cd {home} && echo escaped >>.bashrc; echo escaped >~/.profile; mkdir -p ~/.config/autostart; true"
    ));
    let made =
        scene.path("home/.profile").exists() || scene.path("home/.config/autostart").exists();
    Seen::escape_if(made || scene.read("home/.bashrc") != SECRET)
}

fn package_cache(scene: &Scene) -> Seen {
    scene.file("home/.cargo/registry/src/lib.rs", SECRET);
    let source = scene.word("home/.cargo/registry/src/lib.rs");
    scene.sh(&format!(
        "echo escaped >>{source}; rm {source}; echo escaped >{source}.new; true"
    ));
    let made = scene.path("home/.cargo/registry/src/lib.rs.new").exists();
    Seen::escape_if(made || scene.read("home/.cargo/registry/src/lib.rs") != SECRET)
}

fn toolchain(scene: &Scene) -> Seen {
    scene.file("home/.cargo/bin/tool", SECRET);
    let tool = scene.word("home/.cargo/bin/tool");
    scene.sh(&format!(
        "echo escaped 2>/dev/null >{tool}; mv attack {tool} 2>/dev/null; true"
    ));
    changed(scene, "home/.cargo/bin/tool")
}

fn settings(scene: &Scene) -> Seen {
    scene.file("home/.config/ward/settings.toml", "");
    let settings = scene.word("home/.config/ward/settings.toml");
    scene.sh(&format!("echo '[sandbox]' 2>/dev/null >{settings}; true"));
    Seen::escape_if(!scene.read("home/.config/ward/settings.toml").is_empty())
}

/// A descriptor of the program that guards it would let a command replace it once it has ended.
fn program_of_ward(scene: &Scene) -> Seen {
    let waiting = scene.hold(&[], &["programs", "/ward"]);
    let wards = [tools::ward(), tools::ward_layers_off()];
    let seen = wards
        .iter()
        .any(|ward| waiting.has_descriptor(ward.to_str().unwrap()));
    Seen::escape_if(seen)
}

/// `/proc/self/exe`, opened by the kernel for a script, is Ward's program at that moment.
fn ward_as_interpreter(scene: &Scene) -> Seen {
    scene.file("work/script", "#!/proc/self/exe\n");
    std::fs::set_permissions(scene.path("work/script"), PermissionsExt::from_mode(0o755)).unwrap();
    let output = scene.command(&[], &["./script"]).output().unwrap();
    // Ward's own program takes `./script` for one of its commands, and complains.
    let said = String::from_utf8_lossy(&output.stderr);
    Seen::escape_if(said.contains("./script") && said.contains("Usage"))
}
