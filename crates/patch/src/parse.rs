//! Reading a unified diff, as `git diff` and `diff -u` write it.
//!
//! Strict where leniency would lose changes: a line that belongs to no hunk, or a hunk whose
//! header counts other lines than follow, refuses the whole patch. (This is why no ready parser
//! is used: those at hand skip such lines silently, as GNU patch does.)

use protocol::{ErrorKind, Failure};

use crate::name::{self, Names};

/// What a patch does to one file.
#[derive(Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// To which, and what.
    pub operation: Operation,
    /// What becomes of its lines.
    pub hunks: Vec<Hunk<'a>>,
    /// Whether it shall be executable; nothing where the patch does not say.
    pub executable: Option<bool>,
}

/// Paths as the patch gives them, without the prefixes `a/` and `b/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Its content changes.
    Change {
        /// The file.
        path: String,
    },
    /// It is new.
    Create {
        /// The file.
        path: String,
    },
    /// It goes.
    Delete {
        /// The file.
        path: String,
    },
    /// It gets another name.
    Rename {
        /// The name that it had.
        from: String,
        /// The name that it gets.
        to: String,
    },
    /// It is made from another.
    Copy {
        /// The other, which stays.
        from: String,
        /// The new one.
        to: String,
    },
}

/// A piece of a file before and after. Lines keep their line ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The line of the patch that its `@@` is on.
    pub at: usize,
    /// The first line it is about, from 1; the line before it where it only adds.
    pub start: usize,
    /// All of them, in order.
    pub lines: Vec<Line<'a>>,
}

/// A line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// It stays.
    Kept(&'a str),
    /// It goes.
    Removed(&'a str),
    /// It is new.
    Added(&'a str),
}

/// Reads the whole patch.
pub fn parse(patch: &str) -> Result<Vec<FilePatch<'_>>, Failure> {
    let mut reader = Reader {
        lines: patch.split_inclusive('\n').collect(),
        next: 0,
    };
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with("diff --git ") {
            files.push(reader.git_file()?);
        } else if reader.at_names() {
            files.push(reader.plain_file()?);
        } else if line.starts_with("@@ ") {
            return Err(reader.bad("A hunk without the name of its file: `--- a/…` and `+++ b/…` have to come before it"));
        } else if !files.is_empty() && reader.at_stray_line() {
            return Err(reader.bad("A line that belongs to no hunk. Either the `@@` header above counts too few lines, or it is not part of the patch"));
        } else {
            // What git writes around the diffs: a commit's message, `Index:`, a mail's signature.
            reader.next += 1;
        }
    }
    if files.is_empty() {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            "`patch` holds no diff. It needs `--- a/file`, `+++ b/file` and `@@ … @@` lines, as `git diff` writes them.",
        )
        .with("field", "patch"));
    }
    Ok(files)
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    next: usize,
}

/// What the lines between `diff --git` and the hunks say.
#[derive(Default)]
struct Headers {
    new_file: bool,
    deleted_file: bool,
    rename: (Option<String>, Option<String>),
    copy: (Option<String>, Option<String>),
    executable: Option<bool>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn at_names(&self) -> bool {
        let next = |offset: usize| self.lines.get(self.next + offset).copied().unwrap_or("");
        next(0).starts_with("--- ") && next(1).starts_with("+++ ")
    }

    /// After a hunk, these are lines of one that was not counted.
    fn at_stray_line(&self) -> bool {
        let Some(line) = self.peek() else {
            return false;
        };
        let after_signature = self.next > 0 && is_signature(self.lines[self.next - 1]);
        line.starts_with([' ', '+', '-', '\\']) && !is_signature(line) && !after_signature
    }

    fn git_file(&mut self) -> Result<FilePatch<'a>, Failure> {
        let line = self.peek().unwrap_or_default();
        let names = name::on_git_line(text_of(&line["diff --git ".len()..]));
        self.next += 1;
        let headers = self.headers()?;
        let prefixed = names.as_ref().is_none_or(|names| names.prefixed);
        let hunked = if self.at_names() {
            Some((self.names(Some(prefixed))?, self.hunks()?))
        } else {
            None
        };
        let (named, hunks) = match hunked {
            Some((names, hunks)) => (Some(names), hunks),
            None => (names, Vec::new()),
        };

        let operation = match (headers.rename, headers.copy, named) {
            ((Some(from), Some(to)), _, _) => Operation::Rename { from, to },
            (_, (Some(from), Some(to)), _) => Operation::Copy { from, to },
            (_, _, None) => {
                return Err(self.bad("The file of this diff has no name that can be read"));
            }
            (_, _, Some(names)) if headers.new_file => Operation::Create {
                path: names.new.or(names.old).unwrap_or_default(),
            },
            (_, _, Some(names)) if headers.deleted_file => Operation::Delete {
                path: names.old.or(names.new).unwrap_or_default(),
            },
            (_, _, Some(names)) => self.operation(names)?,
        };
        let changes_content = !hunks.is_empty() || !matches!(operation, Operation::Change { .. });
        if !changes_content && headers.executable.is_none() {
            return Err(self.bad("A diff that changes nothing: it has no hunks"));
        }
        Ok(FilePatch {
            operation,
            hunks,
            executable: headers.executable,
        })
    }

    fn plain_file(&mut self) -> Result<FilePatch<'a>, Failure> {
        let names = self.names(None)?;
        let operation = self.operation(names)?;
        let hunks = self.hunks()?;
        if hunks.is_empty() {
            return Err(self.bad("A hunk was expected here: `@@ -1,3 +1,4 @@`"));
        }
        Ok(FilePatch {
            operation,
            hunks,
            executable: None,
        })
    }

    fn operation(&self, names: Names) -> Result<Operation, Failure> {
        match (names.old, names.new) {
            (Some(_), Some(path)) => Ok(Operation::Change { path }),
            (None, Some(path)) => Ok(Operation::Create { path }),
            (Some(path), None) => Ok(Operation::Delete { path }),
            (None, None) => Err(self.bad("Both sides are /dev/null, so no file is meant")),
        }
    }

    fn headers(&mut self) -> Result<Headers, Failure> {
        let mut headers = Headers::default();
        while let Some(line) = self.peek() {
            let line = text_of(line);
            let after = |prefix: &str| line.strip_prefix(prefix);
            if let Some(mode) = after("new file mode ") {
                headers.new_file = true;
                headers.executable = Some(self.executable(mode)?);
            } else if let Some(mode) = after("deleted file mode ") {
                headers.deleted_file = true;
                self.executable(mode)?;
            } else if let Some(mode) = after("old mode ") {
                self.executable(mode)?;
            } else if let Some(mode) = after("new mode ") {
                headers.executable = Some(self.executable(mode)?);
            } else if let Some(name) = after("rename from ") {
                headers.rename.0 = Some(self.name(name)?);
            } else if let Some(name) = after("rename to ") {
                headers.rename.1 = Some(self.name(name)?);
            } else if let Some(name) = after("copy from ") {
                headers.copy.0 = Some(self.name(name)?);
            } else if let Some(name) = after("copy to ") {
                headers.copy.1 = Some(self.name(name)?);
            } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
                return Err(self.bad("A binary diff, which fs.patch does not take. Use fs.write with `encoding: \"base64\"`"));
            } else if !["index ", "similarity index ", "dissimilarity index "]
                .iter()
                .any(|known| line.starts_with(known))
            {
                break;
            }
            self.next += 1;
        }
        Ok(headers)
    }

    /// Whether a mode means a program. Only regular files are made.
    fn executable(&self, mode: &str) -> Result<bool, Failure> {
        match mode.trim_end() {
            "100644" | "100664" | "100600" => Ok(false),
            "100755" | "100775" | "100700" => Ok(true),
            "120000" => Err(self.bad(
                "It makes or changes a symbolic link, which fs.patch does not do. Use terminal.run",
            )),
            "160000" => {
                Err(self.bad("It changes a submodule, which fs.patch does not do. Use git"))
            }
            _ => Err(self.bad("A mode that is not a regular file's")),
        }
    }

    fn name(&self, text: &str) -> Result<String, Failure> {
        name::read(text).ok_or_else(|| self.bad("A file name that cannot be read"))
    }

    /// The lines `---` and `+++`.
    fn names(&mut self, prefixed: Option<bool>) -> Result<Names, Failure> {
        let mut side = |prefix: &str| {
            let line = self.peek().unwrap_or_default();
            // A time may stand after a tab.
            let text = text_of(&line[prefix.len()..]);
            let text = text.split('\t').next().unwrap_or_default();
            let name = self.name(text)?;
            self.next += 1;
            Ok::<_, Failure>((name != "/dev/null").then_some(name))
        };
        let (old, new) = (side("--- ")?, side("+++ ")?);
        Ok(Names::without_prefixes(old, new, prefixed))
    }

    fn hunks(&mut self) -> Result<Vec<Hunk<'a>>, Failure> {
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with("@@ ")) {
            hunks.push(self.hunk()?);
        }
        Ok(hunks)
    }

    fn hunk(&mut self) -> Result<Hunk<'a>, Failure> {
        let at = self.next + 1;
        let Some(((start, mut old), (_, mut new))) = ranges(self.peek().unwrap_or_default()) else {
            return Err(
                self.bad("A hunk's header that cannot be read. It looks like `@@ -12,7 +12,8 @@`")
            );
        };
        self.next += 1;
        let mut lines = Vec::new();
        while old > 0 || new > 0 {
            let short = "The hunk ends before it has the lines that its `@@` header counts";
            let Some(line) = self.peek() else {
                return Err(self.bad(short));
            };
            let (read, takes_old, takes_new) = match line.as_bytes().first() {
                Some(b' ') => (Line::Kept(&line[1..]), 1, 1),
                Some(b'-') => (Line::Removed(&line[1..]), 1, 0),
                Some(b'+') => (Line::Added(&line[1..]), 0, 1),
                // An empty line whose blank was lost on the way.
                Some(b'\n') => (Line::Kept(line), 1, 1),
                Some(b'\r') if line == "\r\n" => (Line::Kept(line), 1, 1),
                _ => return Err(self.bad(short)),
            };
            if takes_old > old || takes_new > new {
                return Err(self.bad("The hunk has more lines than its `@@` header counts"));
            }
            (old, new) = (old - takes_old, new - takes_new);
            lines.push(read);
            self.next += 1;
            if let Some(marker) = self.peek().filter(|line| line.starts_with("\\ ")) {
                without_line_end(&mut lines, marker);
                self.next += 1;
            }
        }
        Ok(Hunk { at, start, lines })
    }

    fn bad(&self, why: &str) -> Failure {
        let line = self.next + 1;
        Failure::new(
            ErrorKind::PatchFailed,
            format!("Line {line} of the patch: {why}. Nothing was changed."),
        )
        .with("line", line)
    }
}

/// `@@ -12,7 +12,8 @@ …` as two pairs of start and count.
#[allow(clippy::type_complexity, reason = "two ranges, taken apart at once")]
fn ranges(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    Some((range(old)?, range(new)?))
}

/// `\ No newline at end of file` is said of the line before it. A `\r` there is the file's own,
/// unless the patch has one at the end of its every line.
fn without_line_end(lines: &mut [Line<'_>], marker: &str) {
    let end = if marker.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    if let Some(Line::Kept(text) | Line::Removed(text) | Line::Added(text)) = lines.last_mut() {
        *text = text.strip_suffix(end).unwrap_or(text);
    }
}

fn is_signature(line: &str) -> bool {
    matches!(text_of(line), "-- " | "--")
}

/// A line without its end.
pub fn text_of(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
