//! What begins with a slash: said to `ward chat`, not to the agent.

use protocol::Mode;

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slash {
    Role(Option<String>),
    Model(Option<String>),
    Mode(Option<Mode>),
    Undo(Extent),
    Resume(Option<String>),
    New,
    Cost,
    Help,
    Quit,
}

/// How much is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Last,
    Session,
}

const WORDS: &[&str] = &[
    "role", "model", "mode", "undo", "resume", "new", "cost", "help", "quit", "exit",
];

/// What `/help` says.
pub(crate) const HELP: &str = "\
/role [ROLE]      who the agent is from the next turn on; without a name, who it can be
/model [MODEL]    which model answers; without a name, which can
/mode [MODE]      sandbox (held by the kernel) or full (trusted)
/undo [all]       put back what the last file action replaced; all: those of the whole session
/resume [ID]      go on with another session; without an id, choose one
/new              a new session with the next message
/cost             what this session took
/quit             leave; Ctrl-D does the same

Enter sends, also while the agent works. Alt-Enter, Ctrl-J or \\ and Enter begin a new row.
Up and down bring back earlier lines. Ctrl-C cancels what runs; at an empty line, twice leaves.
When the agent asks: a allows once, s for this session, w in this workspace, d denies;
Tab goes between the question and the line.";

/// Reads a line; [`None`] where it is for the agent.
pub(crate) fn read(line: &str) -> Option<Result<Slash, String>> {
    let rest = line.trim_end().strip_prefix('/')?;
    let (word, argument) = match rest.split_once(char::is_whitespace) {
        Some((word, argument)) => (word, Some(argument.trim().to_owned())),
        None => (rest, None),
    };
    // A path, or something with it.
    if word.contains('/') || word.contains('.') {
        return None;
    }
    Some(known(word, argument))
}

fn known(word: &str, argument: Option<String>) -> Result<Slash, String> {
    let argument = argument.filter(|argument| !argument.is_empty());
    let alone = |slash| match &argument {
        None => Ok(slash),
        Some(_) => Err(format!("/{word} stands alone.")),
    };
    match word {
        "role" => Ok(Slash::Role(argument)),
        "model" => Ok(Slash::Model(argument)),
        "mode" => match argument.as_deref() {
            None => Ok(Slash::Mode(None)),
            Some(named) => Mode::parse(named)
                .map(|mode| Slash::Mode(Some(mode)))
                .ok_or_else(|| format!("There is no mode `{named}`. It is sandbox or full.")),
        },
        "undo" => match argument.as_deref() {
            None => Ok(Slash::Undo(Extent::Last)),
            Some("all" | "session") => Ok(Slash::Undo(Extent::Session)),
            Some(_) => Err(
                "/undo takes back the last file action, /undo all those of the session.".to_owned(),
            ),
        },
        "resume" => Ok(Slash::Resume(argument)),
        "new" => alone(Slash::New),
        "cost" => alone(Slash::Cost),
        "help" | "?" => Ok(Slash::Help),
        "quit" | "exit" | "q" => alone(Slash::Quit),
        unknown => Err(format!(
            "There is no /{unknown}. Did you mean /{}? /help lists what there is; a blank before the slash says it to the agent.",
            nearest(unknown)
        )),
    }
}

fn nearest(word: &str) -> &'static str {
    let far = |known: &&str| {
        let edits = strsim::damerau_levenshtein(known, word);
        (edits, known.len().abs_diff(word.len()))
    };
    let near = WORDS.iter().min_by_key(|known| far(known));
    match near {
        Some(known) if far(known).0 <= 2 => known,
        _ => "help",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_with_a_slash_is_for_ward_unless_it_is_a_path() {
        assert_eq!(read("read /etc/hosts"), None);
        assert_eq!(read("/etc/hosts is what?"), None);
        assert_eq!(
            read("/role reviewer"),
            Some(Ok(Slash::Role(Some("reviewer".to_owned()))))
        );
        assert_eq!(read("/mode full"), Some(Ok(Slash::Mode(Some(Mode::Full)))));
        assert_eq!(read("/undo "), Some(Ok(Slash::Undo(Extent::Last))));
        assert_eq!(read(" /undo"), None);
        assert_eq!(read("/undo all"), Some(Ok(Slash::Undo(Extent::Session))));
    }

    #[test]
    fn an_unknown_word_is_told_with_the_nearest_one() {
        for (typed, meant) in [
            ("/modle x", "/model"),
            ("/rol", "/role"),
            ("/resum", "/resume"),
            ("/cots", "/cost"),
            ("/xyzzy", "/help"),
            ("/qiut", "/quit"),
        ] {
            let told = read(typed).unwrap().unwrap_err();
            assert!(told.contains(&format!("Did you mean {meant}?")), "{told}");
        }
        let told = read("/mode fast").unwrap().unwrap_err();
        assert_eq!(told, "There is no mode `fast`. It is sandbox or full.");
    }
}
