//! The files that a command's words name, as they are now. A person who is asked about `./deploy.sh`
//! answers about what is in it, so the answer does not hold for another content.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use policy::command::{Line, Way, Word};
use protocol::facts::{CommandFact, FileFact};
use protocol::{Digest, ErrorKind, Facts, Failure, Mode};
use sha2::{Digest as _, Sha256};

use crate::undo::disk::{self, Entry};

/// The most words that are looked up; a longer line cannot be asked about.
const MOST_WORDS: usize = 16 * 1024;
/// The most folders that a word is looked up in.
const MOST_FOLDERS: usize = 8;
/// The most files that are shown; further ones stand in one digest.
const MOST_SHOWN: usize = 64;
/// How much is read in all; what does not fit is known by its size and its last change.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Adds them to the facts of a command that a person is asked about. Only files count that agents
/// can reach to change: those of the workspace, and in full mode all.
pub(crate) async fn named(
    facts: &Facts,
    mode: Mode,
    workspace: &Path,
    home: Option<&str>,
) -> Result<(Vec<FileFact>, Option<Digest>), Failure> {
    let Some(command) = facts.command.clone() else {
        return Ok((Vec::new(), None));
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
) -> Result<(Vec<FileFact>, Option<Digest>), Failure> {
    let words = words(command, workspace, home);
    if words.len() > MOST_WORDS {
        return Err(Failure::new(
            ErrorKind::TooLarge,
            "A person would have to be asked about this command, and it has too many words to look at what each stands for. Put it into a file, and run that.",
        ));
    }
    let mut shown = Vec::new();
    let mut more = Sha256::new();
    let mut further = 0_usize;
    let mut left = MOST_BYTES;
    for path in files(&words, command, workspace, within) {
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
    let more = (further > 0).then(|| Digest::from_hash(&more.finalize().into()));
    Ok((shown, more))
}

/// Every word that may name a file: those that the policy sees, and all that looks like one, since
/// too many do no harm.
fn words(command: &CommandFact, workspace: &Path, home: Option<&str>) -> Vec<String> {
    let line = Line::of(command, &workspace.to_string_lossy());
    let known = line.commands.iter().flat_map(|command| &command.words);
    let read = line.redirections.iter();
    let read = read.filter(|redirection| redirection.way == Way::Read);
    let ends =
        |char: char| char.is_whitespace() || matches!(char, '\'' | '"' | '`' | '=' | ',' | ':');
    let ends = |char: char| ends(char) || "();&|<>{}$".contains(char);
    let pieces = command.argv.iter().flat_map(|word| word.split(ends));
    let mut seen = HashSet::new();
    (known.map(Word::shown))
        .chain(read.map(|redirection| redirection.shown.as_str()))
        .chain(command.program.as_deref())
        .chain(command.argv.iter().map(String::as_str))
        .chain(pieces)
        // No path is longer.
        .filter(|word| !word.is_empty() && word.len() <= 4096 && seen.insert(*word))
        .map(|word| match (word.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => format!("{home}/{rest}"),
            (Some(_) | None, _) => word.to_owned(),
        })
        .take(MOST_WORDS + 1)
        .collect()
}

/// The real paths of the regular files among them. Where a word names a folder, the others may be
/// meant from there: `cd tools && ./deploy.sh`, `make -C tools`.
fn files(
    words: &[String],
    command: &CommandFact,
    workspace: &Path,
    within: &Path,
) -> BTreeSet<PathBuf> {
    let mut folders = vec![PathBuf::from(&command.cwd)];
    let add = |folder: PathBuf, folders: &mut Vec<PathBuf>| {
        if folders.len() < MOST_FOLDERS && !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    add(workspace.to_owned(), &mut folders);
    for word in words {
        for index in 0..folders.len() {
            let there = folders[index].join(word);
            if there.is_dir()
                && let Ok(real) = there.canonicalize()
                && real.starts_with(within)
            {
                add(real, &mut folders);
            }
        }
    }
    let mut found = BTreeSet::new();
    for word in words {
        for folder in &folders {
            let there = folder.join(word);
            if there.is_file()
                && let Ok(real) = there.canonicalize()
                && real.starts_with(within)
            {
                found.insert(real);
            }
        }
    }
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
        let (files, more) = look(&command(line, work), work, within, None).unwrap();
        assert_eq!(more, None);
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
        assert_eq!(before.0.len(), MOST_SHOWN);
        assert_eq!(before, look(&line));
        fs::write(work.join("f199"), "b").unwrap();
        let after = look(&line);
        assert_eq!(before.0, after.0);
        assert_ne!(before.1, after.1);

        let large = File::create(work.join("large")).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        let line = command("./large", &work);
        let before = look(&line);
        assert_eq!((before.0.len(), &before), (1, &look(&line)));
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
