//! One plain phrase, such as "search for TODO in src", as a step.

use super::step::Step;

/// A phrase that was understood.
pub(super) struct Read {
    pub(super) step: Step,
    /// Whether it ends in words that were not quoted and could go on.
    pub(super) open: bool,
}

const COURTESY: &[&str] = &[
    "please",
    "can you",
    "could you",
    "would you",
    "will you",
    "now",
    "first",
    "next",
    "finally",
    "also",
    "just",
    "then",
    "i want you to",
    "let's",
    "and",
];

const VERBS: &[&str] = &[
    "list", "ls", "dir", "show", "what", "which", "read", "open", "cat", "print", "view",
    "display", "search", "grep", "find", "look", "write", "create", "make", "save", "put",
    "replace", "change", "edit", "in", "mkdir", "move", "rename", "mv", "delete", "remove", "rm",
    "run", "execute", "$",
];

/// Whether a phrase could begin here.
pub(super) fn begins(text: &str) -> bool {
    let text = courteous(text);
    VERBS.iter().any(|verb| strip(text, verb).is_some())
}

/// Understands one phrase; `it` is what was last spoken of.
pub(super) fn read(text: &str, it: Option<&str>) -> Option<Read> {
    let text = courteous(text);
    let closed = |step| Read { step, open: false };
    if let Some(command) = one_of(text, &["run", "execute", "$"]) {
        return run(command).map(closed);
    }
    // What is written keeps its marks; everything else is a sentence.
    if let Some(read) = write(text, it) {
        return Some(read);
    }
    let end = |text: &str| text.trim_end_matches(['.', '!', '?', ',', ';', ' ']).len();
    let text = &text[..end(text)];
    let text = text.strip_suffix(" please").unwrap_or(text);
    let text = &text[..end(text)];
    edit(text, it)
        .or_else(|| folder(text, it))
        .or_else(|| search(text, it))
        .or_else(|| list(text))
        .or_else(|| look(text, it))
        .map(closed)
}

fn run(command: &str) -> Option<Step> {
    let named = strip(command, "the command");
    let command = named.unwrap_or(command);
    // "run the tests" says what is wanted, and not the command that does it.
    if named.is_none() && one_of(command, &["the", "my", "our", "your", "all", "a", "an"]).is_some()
    {
        return None;
    }
    let command = unquoted(command.trim_start_matches(':').trim());
    (!command.is_empty()).then(|| Step::Run {
        command: command.to_owned(),
    })
}

fn write(text: &str, it: Option<&str>) -> Option<Read> {
    let rest = one_of(text, &["write", "create", "make", "save", "put"])?;
    // "write "Hello" to a.txt"
    let content_first = one_of(text, &["write", "save", "put"]).is_some();
    for word in [" to ", " into ", " in ", " as "] {
        if let Some((content, path)) = rest.rsplit_once(word)
            && content_first
            && (is_quoted(content.trim()) || word != " in ")
            && let Some(path) = path_of(path.trim_end_matches(['.', '!']), it)
            && !content.contains(':')
        {
            return Some(Read {
                step: Step::Write {
                    path,
                    content: unquoted(content.trim()).to_owned(),
                },
                open: false,
            });
        }
    }
    // "write a.txt: Hello", "create a file a.txt with Hello"
    let rest = one_of(
        rest,
        &["a file", "the file", "a new file", "file", "to", "into"],
    )
    .unwrap_or(rest);
    let rest = one_of(rest, &["called", "named"]).unwrap_or(rest);
    let (path, content) = rest.split_once(':').or_else(|| {
        [
            " with the content ",
            " with the text ",
            " with ",
            " containing ",
            " saying ",
        ]
        .iter()
        .find_map(|word| rest.split_once(word))
    })?;
    let content = content
        .strip_prefix('\n')
        .unwrap_or(content.trim_start_matches(' '));
    let open = !is_quoted(content.trim());
    let content = match open {
        true => content.trim_end_matches(' '),
        false => unquoted(content.trim()),
    };
    Some(Read {
        step: Step::Write {
            path: path_of(path, it)?,
            content: content.to_owned(),
        },
        open,
    })
}

fn edit(text: &str, it: Option<&str>) -> Option<Step> {
    // "in a.txt replace x with y" is "replace x with y in a.txt".
    let (first, text) = match one_of(text, &["in", "edit"]) {
        Some(rest) => {
            let at = ["replace ", "change "]
                .iter()
                .filter_map(|verb| find(rest, verb))
                .min()?;
            let path = rest[..at].trim_end_matches([' ', ',', ':']);
            (Some(path_of(path, it)?), &rest[at..])
        }
        None => (None, text),
    };
    let (rest, word) = match strip(text, "replace") {
        Some(rest) => (rest, " with "),
        None => (strip(text, "change")?, " to "),
    };
    let (old, rest) = rest.split_once(word).or_else(|| rest.split_once(" by "))?;
    let (rest, mut all) = trailing_all(rest);
    let (new, path) = match first {
        Some(path) => (rest, path),
        None => {
            let (new, path) = rest.rsplit_once(" in ")?;
            let (path, everywhere) = trailing_all(path);
            all |= everywhere;
            (new, path_of(path, it)?)
        }
    };
    let old = match one_of(old, &["every", "all", "each"]) {
        Some(old) => {
            all = true;
            old
        }
        None => old,
    };
    let old = unquoted(old.trim());
    (!old.is_empty()).then(|| Step::Edit {
        path,
        old: old.to_owned(),
        new: unquoted(new.trim()).to_owned(),
        all,
    })
}

fn trailing_all(text: &str) -> (&str, bool) {
    match text.trim_end().strip_suffix(" everywhere") {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

fn folder(text: &str, it: Option<&str>) -> Option<Step> {
    const FOLDER: &[&str] = &[
        "a folder",
        "the folder",
        "folder",
        "a directory",
        "directory",
    ];
    if let Some(rest) = one_of(text, &["mkdir"])
        .or_else(|| one_of(text, &["make", "create"]).and_then(|rest| one_of(rest, FOLDER)))
    {
        let rest = one_of(rest, &["called", "named"]).unwrap_or(rest);
        return path_of(rest, it).map(|path| Step::Mkdir { path });
    }
    if let Some(rest) = one_of(text, &["move", "rename", "mv"]) {
        let (from, to) = rest.split_once(" to ").or_else(|| rest.split_once(' '))?;
        return Some(Step::Move {
            from: path_of(from, it)?,
            to: path_of(to, None)?,
        });
    }
    let rest = one_of(text, &["delete", "remove", "rm"])?;
    let rest = one_of(rest, &["the file", "the folder", "file"]).unwrap_or(rest);
    path_of(rest, it).map(|path| Step::Delete { path })
}

fn search(text: &str, it: Option<&str>) -> Option<Step> {
    let rest = one_of(
        text,
        &[
            "search for",
            "search",
            "grep for",
            "grep",
            "look for",
            "find",
        ],
    )?;
    let (what, path) = match rest.rsplit_once(" in ") {
        Some((what, path)) => (what, place(path, it)?),
        None => (rest, ".".to_owned()),
    };
    let what = what.trim();
    if !is_quoted(what) {
        let files = one_of(what, &["all", "the", "every"]).unwrap_or(what);
        let files = one_of(
            files,
            &["files named", "files called", "files like", "file named"],
        )
        .unwrap_or(files);
        let files = files.strip_suffix(" files").unwrap_or(files).trim();
        if files.contains('*') && !files.contains(' ') {
            return Some(Step::Glob {
                pattern: unquoted(files).to_owned(),
                path,
            });
        }
    }
    let pattern = match what
        .strip_prefix('/')
        .and_then(|what| what.strip_suffix('/'))
    {
        Some(regex) => regex.to_owned(),
        None => literal(unquoted(what)),
    };
    (!pattern.is_empty()).then_some(Step::Search { pattern, path })
}

/// Plain words as a regular expression that means just them.
fn literal(words: &str) -> String {
    let mut pattern = String::with_capacity(words.len());
    for c in words.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn list(text: &str) -> Option<Step> {
    let here = || Step::List {
        path: ".".to_owned(),
    };
    const FILES: &[&str] = &[
        "all the files",
        "all files",
        "the files",
        "files",
        "the folder",
        "the directory",
        "folder",
        "directory",
        "everything",
        "what is",
        "the contents of",
        "the workspace",
    ];
    let asked = one_of(
        text,
        &["what files are", "which files are", "what's", "what is"],
    );
    let rest = match asked {
        Some(rest) => rest,
        None => match one_of(text, &["list", "ls", "dir"]) {
            Some(rest) => one_of(rest, FILES).unwrap_or(rest),
            None => one_of(one_of(text, &["show me", "show"])?, FILES)?,
        },
    };
    let rest = one_of(rest, &["in", "of", "under", "inside"]).unwrap_or(rest);
    let rest = one_of(rest, &["the folder", "folder", "the directory"]).unwrap_or(rest);
    if rest.is_empty() || is_here(rest) {
        return Some(here());
    }
    let path = path_of(rest, None)?;
    // "what is in README.md" is a question about a file.
    match asked.is_some() && looks_like_a_file(&path) {
        true => Some(Step::Read { path }),
        false => Some(Step::List { path }),
    }
}

fn look(text: &str, it: Option<&str>) -> Option<Step> {
    let rest = one_of(
        text,
        &[
            "read", "open", "cat", "print", "view", "display", "show me", "show",
        ],
    )?;
    let rest = one_of(rest, &["the file", "file", "the contents of", "what is in"]).unwrap_or(rest);
    path_of(rest, it).map(|path| Step::Read { path })
}

fn looks_like_a_file(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| name.trim_start_matches('.').contains('.'))
}

fn is_here(words: &str) -> bool {
    [
        "here",
        "this folder",
        "this directory",
        "the workspace",
        "this workspace",
        "there",
    ]
    .iter()
    .any(|here| words.trim().eq_ignore_ascii_case(here))
}

/// A folder to look in.
fn place(words: &str, it: Option<&str>) -> Option<String> {
    let words = one_of(words, &["the folder", "folder", "the file"]).unwrap_or(words);
    if is_here(words) {
        return Some(".".to_owned());
    }
    path_of(words, it)
}

/// A path: one word, or anything in quotes.
fn path_of(words: &str, it: Option<&str>) -> Option<String> {
    let words = words.trim();
    if is_quoted(words) {
        return Some(unquoted(words).to_owned());
    }
    if words.eq_ignore_ascii_case("it") || words.eq_ignore_ascii_case("that file") {
        return it.map(str::to_owned);
    }
    let words = strip(words, "the").unwrap_or(words);
    (!words.is_empty() && !words.contains(char::is_whitespace)).then(|| words.to_owned())
}

fn is_quoted(words: &str) -> bool {
    let mut chars = words.chars();
    match (chars.next(), chars.next_back()) {
        (Some(first), Some(last)) => first == last && matches!(first, '"' | '\'' | '`'),
        _ => false,
    }
}

fn unquoted(words: &str) -> &str {
    match is_quoted(words) {
        true => &words[1..words.len() - 1],
        false => words,
    }
}

/// Without "please", "could you" and the like in front.
fn courteous(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(rest) = one_of(text, COURTESY) {
        text = rest.trim_start_matches([',', ' ']);
    }
    text
}

fn one_of<'a>(text: &'a str, starts: &[&str]) -> Option<&'a str> {
    starts.iter().find_map(|start| strip(text, start))
}

/// What comes after these words, if the text begins with them as whole words.
fn strip<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let text = text.trim_start();
    let head = text.get(..start.len())?;
    if !head.eq_ignore_ascii_case(start) {
        return None;
    }
    let rest = &text[start.len()..];
    match rest.chars().next() {
        None => Some(rest),
        Some(c) if c.is_whitespace() || matches!(c, ',' | ':') => {
            Some(rest.trim_start_matches(' '))
        }
        Some(_) => None,
    }
}

fn find(text: &str, words: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(words)
}
