use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use super::folder::Refusal;
use super::*;

/// A config folder and a workspace that are gone after the test.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["config", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn is_current(&self, files: &Files) -> bool {
        files.is_current(&Here::look(&self.work()).unwrap())
    }

    fn read(&self) -> Files {
        let trust = Trust::read(&self.config()).unwrap();
        Files::read(&self.config(), &self.work(), &trust).unwrap()
    }

    fn trust(&self) {
        let found = Files::read_as_trusted(&self.config(), &self.work())
            .unwrap()
            .found
            .unwrap();
        Trust::add(&self.config(), &self.work(), found).unwrap();
    }
}

fn told(files: &Files) -> Vec<&str> {
    files
        .mistakes
        .iter()
        .map(|mistake| mistake.what.as_str())
        .collect()
}

const ALLOW: &str = "[[rules]]\nallow = \"net\"\nreason = \"We need it.\"\n";
const ROLE: &str = "---\nname: dev\nmode: full\nskills: [fs.read, net]\n---\nDo.\n";

#[test]
fn a_workspace_is_trusted_by_its_bytes_and_no_longer_after_any_change() {
    let place = Place::new();
    place.write("work/ward.toml", ALLOW);
    place.write("work/.ward/roles/dev.md", ROLE);
    let before = place.read();
    assert_eq!(before.source, Source::Untrusted);
    assert!(before.roles.get("dev").is_err());
    place.trust();
    let after = place.read();
    assert_eq!(after.source, Source::Trusted);
    assert!(after.roles.get("dev").is_ok());
    assert_ne!(before.version, after.version);
    assert_eq!(
        after.allows(),
        [
            "role dev, mode full, may fs.read, net",
            "allow net: We need it."
        ]
    );
    for (name, text) in [
        ("work/ward.toml", &*format!("{ALLOW}\n")),
        ("work/.ward/roles/dev.md", &*format!("{ROLE}x")),
        ("work/.ward/roles/more.md", "---\nname: more\n---\n"),
        ("work/.claude/agents/more.md", "---\nname: more\n---\n"),
        ("work/.ward/skills/s/SKILL.md", "---\nname: s\n---\n"),
        ("work/.claude/skills/s/SKILL.md", "---\nname: s\n---\n"),
    ] {
        let path = place.folder.path().join(name);
        let old = fs::read(&path).ok();
        place.write(name, text);
        let changed = place.read();
        assert_eq!(changed.source, Source::Untrusted, "{name}");
        assert_ne!(changed.version, after.version, "{name}");
        match old {
            Some(old) => fs::write(&path, old).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        assert_eq!(place.read().version, after.version, "{name}");
    }
    fs::rename(
        place.work().join(".ward/roles/dev.md"),
        place.work().join(".ward/roles/dave.md"),
    )
    .unwrap();
    assert_eq!(place.read().source, Source::Untrusted);
}

#[test]
fn skill_folders_of_claude_code_name_what_agents_of_it_may() {
    let place = Place::new();
    place.write(
        "work/.claude/skills/tests/SKILL.md",
        "---\nname: tests\nallowed-tools: Read, Bash(npm test:*)\n---\nRun them.\n",
    );
    place.write(
        "work/.claude/agents/tester.md",
        "---\nname: tester\nskills: [tests]\n---\n",
    );
    assert_eq!(
        place.read().allows(),
        ["role tester, mode sandbox, may fs.read, terminal.run(npm test *)"]
    );
}

#[test]
fn trust_is_for_one_workspace_kept_to_the_person_and_can_be_taken_back() {
    let place = Place::new();
    place.write("work/ward.toml", ALLOW);
    place.trust();
    let file = place.config().join("trust.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let other = place.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::copy(place.work().join("ward.toml"), other.join("ward.toml")).unwrap();
    let trust = Trust::read(&place.config()).unwrap();
    let files = Files::read(&place.config(), &other, &trust).unwrap();
    assert_eq!(files.source, Source::Untrusted);
    assert_eq!(trust.iter().count(), 1);

    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(
        Trust::read(&place.config()),
        Err(BadTrust::Open(_))
    ));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Trust::revoke(&place.config(), &place.work()).unwrap());
    assert!(!Trust::revoke(&place.config(), &place.work()).unwrap());
    assert_eq!(place.read().source, Source::Untrusted);
    fs::write(&file, "{\"workspaces\": 3}").unwrap();
    assert!(matches!(
        Trust::read(&place.config()),
        Err(BadTrust::Content { .. })
    ));
}

#[test]
fn what_several_trust_at_once_is_all_kept() {
    let place = Place::new();
    let trusted = |name: &str| Trusted {
        digest: Digest::of(name.as_bytes()),
        files: [].into(),
        allows: Vec::new(),
    };
    std::thread::scope(|scope| {
        for number in 0..8 {
            let config = place.config();
            scope.spawn(move || {
                let name = format!("/w{number}");
                Trust::add(&config, Path::new(&name), trusted(&name)).unwrap();
            });
        }
    });
    assert_eq!(Trust::read(&place.config()).unwrap().iter().count(), 8);
}

#[test]
fn links_in_a_workspace_lead_nowhere() {
    let place = Place::new();
    place.write("secret/rules.toml", ALLOW);
    place.write("secret/roles/dev.md", ROLE);
    let secret = place.folder.path().join("secret");
    symlink(secret.join("rules.toml"), place.work().join("ward.toml")).unwrap();
    fs::create_dir(place.work().join(".ward")).unwrap();
    symlink(secret.join("roles"), place.work().join(".ward/roles")).unwrap();
    symlink(&secret, place.work().join(".claude")).unwrap();
    let files = place.read();
    let link = Refusal::Link.to_string();
    // `.claude` is told for its agents and for its skills.
    assert_eq!(told(&files), [&link, &link, &link, &link]);
    assert_eq!(files.found, None);
    // A rule that denies may be behind the link, so nothing can be decided.
    assert_eq!(files.refused().len(), 1);
    assert!(files.roles.get("dev").is_err());
    // The person may keep theirs wherever they like.
    symlink(secret.join("roles"), place.config().join("roles")).unwrap();
    symlink(secret.join("rules.toml"), place.config().join("rules.toml")).unwrap();
    assert!(place.read().roles.get("dev").is_ok());
}

#[test]
fn what_is_no_text_file_of_a_fair_size_is_refused_and_does_not_hang() {
    let place = Place::new();
    fs::create_dir_all(place.work().join(".ward/roles")).unwrap();
    let fifo = place.work().join(".ward/roles/fifo.md");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    place.write("work/.ward/roles/bytes.md", [0xff, 0xfe]);
    place.write("work/.ward/roles/large.md", vec![b'a'; 1024 * 1024 + 1]);
    fs::create_dir(place.work().join(".ward/roles/folder.md")).unwrap();
    fs::create_dir(place.work().join("ward.toml")).unwrap();
    let files = place.read();
    assert_eq!(
        told(&files),
        [
            Refusal::Text.to_string(),
            Refusal::Kind.to_string(),
            Refusal::Kind.to_string(),
            Refusal::Size.to_string(),
            Refusal::Kind.to_string(),
        ]
    );
    assert_eq!(files.refused().len(), 1);
    fs::remove_file(fifo).unwrap();
    for number in 0..257 {
        place.write(&format!("work/.ward/skills/s{number}/x"), "");
    }
    assert!(told(&place.read()).contains(&&*Refusal::Many.to_string()));
}

#[test]
fn names_that_are_not_text_are_told() {
    let place = Place::new();
    fs::create_dir_all(place.work().join(".ward/roles")).unwrap();
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.md");
    fs::write(place.work().join(".ward/roles").join(name), ROLE).unwrap();
    assert_eq!(told(&place.read()), [Refusal::Text.to_string()]);
}

#[test]
fn too_much_together_is_refused() {
    let place = Place::new();
    let body = "a".repeat(1024 * 1024 - 100);
    for number in 0..8 {
        place.write(
            &format!("work/.ward/roles/r{number}.md"),
            format!("---\nname: r{number}\n---\n{body}"),
        );
    }
    let files = place.read();
    assert_eq!(told(&files), vec![Refusal::Together.to_string(); 3]);
}

#[test]
fn a_mistake_in_rules_is_told_and_refuses_to_decide_one_in_a_role_does_not() {
    let place = Place::new();
    place.write("work/.ward/roles/odd.md", "---\nskils: []\n---\n");
    let files = place.read();
    assert_eq!(files.mistakes.len(), 1);
    assert_eq!(files.refused(), []);
    place.write("work/ward.toml", "[[rules]]\ndenny = \"net\"\n");
    assert_eq!(place.read().refused().len(), 1);
}

#[test]
fn a_change_is_seen_without_reading() {
    let place = Place::new();
    place.write("config/roles/mine.md", "---\nname: mine\n---\n");
    place.write("work/ward.toml", ALLOW);
    place.write("work/.ward/roles/dev.md", ROLE);
    // Files that have just been written are not relied on: time has to pass, as it does.
    let settled = || {
        for _ in 0..200 {
            let files = place.read();
            if place.is_current(&files) {
                return files;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it never settles");
    };
    let changes: [&dyn Fn(); 7] = [
        &|| place.write("work/ward.toml", ALLOW.replace("net", "fs.")),
        &|| place.write("work/.ward/roles/new.md", ROLE),
        &|| fs::remove_file(place.work().join(".ward/roles/new.md")).unwrap(),
        &|| place.write("work/.claude/agents/a.md", ROLE),
        &|| place.write("config/rules.toml", ALLOW),
        &|| place.write("config/roles/mine.md", "---\nname: mime\n---\n"),
        &|| place.trust(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let files = settled();
        assert!(place.is_current(&files));
        change();
        assert!(!place.is_current(&files), "change {number}");
    }
}

#[test]
fn what_comes_where_nothing_decided_is_seen_and_what_else_comes_is_no_change() {
    let place = Place::new();
    // A moment ago something came into the folders: they are not relied on yet.
    let files = place.read();
    assert!(place.is_current(&files));
    std::thread::sleep(Duration::from_millis(50));
    let settled = place.read();
    for files in [&files, &settled] {
        assert!(place.is_current(files));
        place.write("work/README.md", "Anything.\n");
        place.write("config/settings.toml", "");
        assert!(place.is_current(files), "nothing of it decides");
    }
    let comes: [&dyn Fn(); 3] = [
        &|| place.write("work/.claude/agents/a.md", ROLE),
        &|| place.write("config/rules.toml", ALLOW),
        &|| place.trust(),
    ];
    for (number, comes) in comes.iter().enumerate() {
        let before = place.read();
        std::thread::sleep(Duration::from_millis(50));
        let settled = place.read();
        comes();
        assert!(!place.is_current(&before), "{number}");
        assert!(!place.is_current(&settled), "{number}");
    }
}
