//! The files that a command's words name, as they are now. A person who is asked about `./deploy.sh`
//! answers about what is in it, so the answer does not hold for another content. Words whose files
//! cannot be known before the command runs are told beside.

mod glob;
mod words;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use protocol::facts::{CommandFact, FileFact};
use protocol::{Digest, ErrorKind, Facts, Failure, Mode};
use sha2::{Digest as _, Sha256};

use crate::undo::disk::{self, Entry};

use self::glob::Budget;
use self::words::{MOST_WORDS, Words};

/// The most folders that a word is looked up in.
const MOST_FOLDERS: usize = 16;
/// The most files that are shown; further ones stand in one digest.
const MOST_SHOWN: usize = 64;
/// How much is read in all; what does not fit is known by its size and its last change.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What the words of a command name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) files: Vec<FileFact>,
    /// Stands for further ones.
    pub(crate) more_files: Option<Digest>,
    /// Words whose files are not among them, because nobody can know which they are.
    pub(crate) unbound: Vec<String>,
}

impl Named {
    /// What these facts say about it.
    pub(crate) fn of(facts: &Facts) -> Self {
        Self {
            files: facts.files.clone(),
            more_files: facts.more_files.clone(),
            unbound: facts.unbound.clone(),
        }
    }

    /// The facts with this in them.
    pub(crate) fn put_into(self, facts: &mut Facts) {
        let Self {
            files,
            more_files,
            unbound,
        } = self;
        (facts.files, facts.more_files, facts.unbound) = (files, more_files, unbound);
    }
}

/// Looks at them for a command that a person is asked about. Only files count that agents can reach
/// to change: those of the workspace, and in full mode all.
pub(crate) async fn named(
    facts: &Facts,
    mode: Mode,
    workspace: &Path,
    home: Option<&str>,
) -> Result<Named, Failure> {
    let Some(command) = facts.command.clone() else {
        return Ok(Named::default());
    };
    let within = match mode {
        Mode::Sandbox => workspace.to_owned(),
        Mode::Full => PathBuf::from("/"),
    };
    let (workspace, home) = (workspace.to_owned(), home.map(ToOwned::to_owned));
    let look = move || look(&command, &workspace, &within, home.as_deref());
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|error| Err(Failure::new(ErrorKind::Internal, error.to_string())))
}

fn look(
    command: &CommandFact,
    workspace: &Path,
    within: &Path,
    home: Option<&str>,
) -> Result<Named, Failure> {
    let confined = within == workspace;
    let mut words = Words::of(command, workspace, home, confined);
    if words.all.len() > MOST_WORDS {
        return Err(Failure::new(
            ErrorKind::TooLarge,
            "A person would have to be asked about this command, and it has too many words to look at what each stands for. Put it into a file, and run that.",
        ));
    }
    let mut shown = Vec::new();
    let mut more = Sha256::new();
    let mut further = 0_usize;
    let mut left = MOST_BYTES;
    for path in files(&mut words, command, workspace, within) {
        let Some(fact) = fact(&path, &mut left) else {
            continue;
        };
        if shown.len() < MOST_SHOWN {
            shown.push(fact);
            continue;
        }
        further += 1;
        for part in [fact.path.as_str(), fact.digest.as_str()] {
            more.update(part);
            more.update([0]);
        }
    }
    Ok(Named {
        files: shown,
        more_files: (further > 0).then(|| Digest::from_hash(&more.finalize().into())),
        unbound: words.unbound,
    })
}

/// The real paths of the regular files among them. Where a word names a folder, the others may be
/// meant from there: `cd tools && ./deploy.sh`, `make -C tools`.
fn files(
    words: &mut Words,
    command: &CommandFact,
    workspace: &Path,
    within: &Path,
) -> BTreeSet<PathBuf> {
    let mut folders = vec![PathBuf::from(&command.cwd)];
    if folders[0] != workspace {
        folders.push(workspace.to_owned());
    }
    let mut budget = Budget::new();
    let mut left_out = Vec::new();
    for word in &words.all {
        for index in 0..folders.len() {
            for there in word.paths(&folders[index], &mut budget) {
                if there.is_dir()
                    && let Ok(real) = there.canonicalize()
                    && real.starts_with(within)
                    && !folders.contains(&real)
                {
                    match folders.len() < MOST_FOLDERS {
                        true => folders.push(real),
                        false => left_out.push(word.shown()),
                    }
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    for word in &words.all {
        for folder in &folders {
            for there in word.paths(folder, &mut budget) {
                if there.is_file()
                    && let Ok(real) = there.canonicalize()
                    && real.starts_with(within)
                {
                    found.insert(real);
                }
            }
            if budget.is_spent() && word.globs() {
                left_out.push(word.shown());
            }
        }
    }
    left_out.iter().for_each(|word| words.leave_out(word));
    found
}

/// A file with its content's digest, or, where that would be too much to read, one of what changes
/// with every change to it.
fn fact(path: &Path, left: &mut u64) -> Option<FileFact> {
    let Ok(Entry::File { file, size, .. }) = disk::look(path) else {
        return None;
    };
    let read = match size <= *left {
        true => content(&file, left).ok().flatten(),
        false => None,
    };
    let digest = match read {
        Some(digest) => digest,
        None => {
            let about = file.metadata().ok()?;
            let (inode, changed) = (about.ino(), (about.ctime(), about.ctime_nsec()));
            Digest::of(format!("{inode} {} {changed:?}", about.len()).as_bytes())
        }
    };
    Some(FileFact {
        path: path.to_string_lossy().into_owned(),
        digest,
    })
}

/// The digest of what is in it; [`None`] where that is more than is left to be read.
fn content(mut file: &File, left: &mut u64) -> std::io::Result<Option<Digest>> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(Some(Digest::from_hash(&hash.finalize().into())));
        }
        // Not by the size it says it has: it may grow meanwhile.
        match left.checked_sub(count as u64) {
            Some(rest) => *left = rest,
            None => return Ok(None),
        }
        hash.update(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn command(line: &str, cwd: &Path) -> CommandFact {
        CommandFact {
            line: Some(line.to_owned()),
            argv: ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
            program: Some("/bin/sh".to_owned()),
            cwd: cwd.to_string_lossy().into_owned(),
            env: [].into(),
        }
    }

    fn found(line: &str, work: &Path, within: &Path) -> Vec<(String, Digest)> {
        let named = look(&command(line, work), work, within, None).unwrap();
        assert_eq!(named.more_files, None);
        let files = named.files;
        let name = |file: FileFact| {
            let name = Path::new(&file.path).file_name().unwrap();
            (name.to_string_lossy().into_owned(), file.digest)
        };
        files.into_iter().map(name).collect()
    }

    #[test]
    fn every_file_that_a_word_of_the_line_names_is_found_with_its_content() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().canonicalize().unwrap();
        let work = root.join("work");
        fs::create_dir_all(work.join("tools/deep")).unwrap();
        fs::write(work.join("deploy.sh"), "a").unwrap();
        fs::write(work.join("tools/deep/run.py"), "b").unwrap();
        fs::write(root.join("outside.sh"), "c").unwrap();
        symlink("deploy.sh", work.join("link")).unwrap();
        symlink("../outside.sh", work.join("out")).unwrap();
        let file = |name: &str, content: &str| (name.to_owned(), Digest::of(content.as_bytes()));
        let deploy = [file("deploy.sh", "a")];
        let absolute = format!("{}/deploy.sh --now", work.display());
        for line in [
            "./deploy.sh",
            "bash deploy.sh",
            "cd . && ./deploy.sh",
            "cd tools && ../deploy.sh",
            &absolute,
            "env A=1 sh -c './deploy.sh; true'",
            "for f in deploy.sh; do bash $f; done",
            "bash < deploy.sh",
            "eval \"$(cat deploy.sh)\"",
            "tool --script=deploy.sh",
            "./link",
        ] {
            assert_eq!(found(line, &work, &work), deploy, "{line}");
        }
        let run = [file("run.py", "b")];
        for line in [
            "cd tools && cd deep && python3 run.py",
            "make -C tools/deep run.py",
            "pushd tools/deep; ./run.py",
        ] {
            assert_eq!(found(line, &work, &work), run, "{line}");
        }
        for line in ["ls", "./new.sh", "echo tools", "./out", "cat ../outside.sh"] {
            assert_eq!(found(line, &work, &work), [], "{line}");
        }
        let shell = fs::canonicalize("/bin/sh").unwrap();
        let full = found("./out", &work, Path::new("/"));
        assert_eq!(
            full.iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["outside.sh", shell.file_name().unwrap().to_str().unwrap()]
        );
    }

    /// The names of what a line's words name in full mode, besides the shell, and what is left open.
    fn bound(line: &str, work: &Path, home: &Path) -> (Vec<String>, Vec<String>) {
        let home = home.to_string_lossy();
        let within = Path::new("/");
        let named = look(&command(line, work), work, within, Some(&home)).unwrap();
        let above = work.parent().unwrap();
        let names = named.files.iter().filter_map(|file| {
            let name = Path::new(&file.path).strip_prefix(above).ok()?;
            Some(name.to_string_lossy().into_owned())
        });
        (names.collect(), named.unbound)
    }

    #[test]
    fn what_a_shell_makes_of_globs_of_its_folder_and_of_home_is_bound() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().canonicalize().unwrap();
        let (work, home) = (root.join("work"), root.join("home"));
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::create_dir_all(work.join("pack")).unwrap();
        fs::create_dir_all(&home).unwrap();
        for file in ["d.sh", "e.sh", "sub/s.sh", "m.py", "pack/__main__.py"] {
            fs::write(work.join(file), "a").unwrap();
        }
        fs::write(home.join("x.sh"), "a").unwrap();
        let cases: &[(&str, &[&str])] = &[
            ("./d*.sh", &["work/d.sh"]),
            ("bash ?.sh", &["work/d.sh", "work/e.sh"]),
            ("bash [d].sh", &["work/d.sh", "work/e.sh"]),
            ("bash */s.sh", &["work/sub/s.sh"]),
            ("bash {d,e}.sh", &["work/d.sh", "work/e.sh"]),
            ("for f in ./d*.sh; do bash a; done", &["work/d.sh"]),
            ("bash < d*.sh", &["work/d.sh"]),
            ("\"$PWD\"/d.sh", &["work/d.sh"]),
            ("bash ${PWD}/d.sh", &["work/d.sh"]),
            ("cd sub && bash $PWD/s.sh", &["work/sub/s.sh"]),
            ("bash ~+/d.sh", &["work/d.sh"]),
            ("tool --script=$PWD/d.sh", &["work/d.sh"]),
            ("$HOME/x.sh", &["home/x.sh"]),
            ("bash \"$HOME/x.sh\"", &["home/x.sh"]),
            ("bash ~/x.sh", &["home/x.sh"]),
            ("cd ~ && ./x.sh", &["home/x.sh"]),
            ("cd $HOME && ./x.sh", &["home/x.sh"]),
            ("cd \"${HOME}\" && ./x.sh", &["home/x.sh"]),
            ("cd && ./x.sh", &["home/x.sh"]),
            ("cd -P; ./x.sh", &["home/x.sh"]),
            ("cd s*; ./s.sh", &["work/sub/s.sh"]),
            ("make -fd.sh", &["work/d.sh"]),
            ("curl -d@d.sh a", &["work/d.sh"]),
            ("python3 -m m", &["work/m.py"]),
            ("python3 -mm", &["work/m.py"]),
            ("python3 -m pack", &["work/pack/__main__.py"]),
            ("python3 -m work.m", &[]),
            ("grep 'd*' a", &[]),
        ];
        for (line, files) in cases {
            let (named, unbound) = bound(line, &work, &home);
            assert_eq!(named, *files, "{line}");
            assert_eq!(unbound, [] as [&str; 0], "{line}");
        }
        let (named, unbound) = bound("PATH=$HOME:$PATH x.sh", &work, &home);
        assert_eq!(named, ["home/x.sh"]);
        assert_eq!(unbound, ["PATH"]);
    }

    #[test]
    fn words_whose_files_nobody_can_know_are_told() {
        let above = tempfile::tempdir().unwrap();
        let work = above.path().canonicalize().unwrap();
        let cases: &[(&str, &[&str])] = &[
            ("bash $X", &["$X"]),
            ("bash \"$X/d.sh\"", &["$X/d.sh"]),
            ("bash ~ada/d.sh", &["~ada/d.sh"]),
            ("bash ~-/d.sh", &["~-/d.sh"]),
            ("bash < $X", &["$X"]),
            ("bash {1..9}.sh", &["{1..9}.sh"]),
            ("bash **/d.sh", &["**/d.sh"]),
            ("cd - && ./d.sh", &["cd -"]),
            ("CDPATH=/x; cd sub && ./d.sh", &["CDPATH"]),
            ("HOME=/x; bash ~/d.sh", &["HOME"]),
            ("read PWD; bash $PWD/d.sh", &["PWD"]),
            ("bash 'a$X' \\$Y", &[]),
            ("echo $", &[]),
            ("ls", &[]),
        ];
        for (line, told) in cases {
            let (_, unbound) = bound(line, &work, &work.join("home"));
            assert_eq!(unbound, *told, "{line}");
        }
        let substituted = bound("bash $(cat x)", &work, &work).1;
        assert_eq!(substituted, ["$(cat x)"]);
        let many: Vec<String> = (0..40).map(|number| format!("$X{number}")).collect();
        assert_eq!(bound(&many.join(" "), &work, &work).1.len(), 17);
        // A room's own folders are not looked into.
        let in_room = |line: &str| {
            let named = look(&command(line, &work), &work, &work, Some("/home/ada")).unwrap();
            named.unbound
        };
        assert_eq!(in_room("bash ~/d.sh"), ["~/d.sh"]);
        assert_eq!(in_room("bash $HOME/d.sh"), ["$HOME/d.sh"]);
        assert_eq!(in_room("bash /tmp/d.sh"), ["/tmp/d.sh"]);
        assert_eq!(in_room("bash d.sh"), [] as [&str; 0]);
    }

    #[test]
    fn more_folders_or_entries_than_are_looked_at_are_told() {
        let above = tempfile::tempdir().unwrap();
        let work = above.path().canonicalize().unwrap();
        let names: Vec<String> = (100..130).map(|number| format!("f{number}")).collect();
        for name in &names {
            fs::create_dir(work.join(name)).unwrap();
        }
        let (_, unbound) = bound(&format!("ls {}", names.join(" ")), &work, &work);
        assert!(unbound.contains(&"f129".to_owned()), "{unbound:?}");
    }

    #[test]
    fn many_files_stand_in_one_digest_and_a_large_one_is_known_by_its_last_change() {
        let work = tempfile::tempdir().unwrap();
        let work = work.path().canonicalize().unwrap();
        let names: Vec<String> = (100..200).map(|number| format!("f{number}")).collect();
        for name in &names {
            fs::write(work.join(name), "a").unwrap();
        }
        let line = command(&format!("rm {}", names.join(" ")), &work);
        let look = |line: &CommandFact| look(line, &work, &work, None).unwrap();
        let before = look(&line);
        assert_eq!(before.files.len(), MOST_SHOWN);
        assert_eq!(before, look(&line));
        fs::write(work.join("f199"), "b").unwrap();
        let after = look(&line);
        assert_eq!(before.files, after.files);
        assert_ne!(before.more_files, after.more_files);

        let large = File::create(work.join("large")).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        let line = command("./large", &work);
        let before = look(&line);
        assert_eq!((before.files.len(), &before), (1, &look(&line)));
        large.set_len(MOST_BYTES + 2).unwrap();
        assert_ne!(before, look(&line));
    }

    #[test]
    fn a_line_with_more_words_than_can_be_looked_up_is_refused() {
        let work = tempfile::tempdir().unwrap();
        let words: Vec<String> = (0..=MOST_WORDS).map(|number| number.to_string()).collect();
        let line = command(&words.join(" "), work.path());
        let refused = look(&line, work.path(), work.path(), None).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::TooLarge);
    }
}
