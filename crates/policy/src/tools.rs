//! What the tools of Claude Code are called here, since agent and skill files for it exist.

/// Whether a file is one of Claude Code's, so that what Ward does not know in it need not be a
/// mistake.
pub(crate) fn are_of(file: &str) -> bool {
    file.split('/').any(|name| name == ".claude")
}

/// What a word in such a list means.
pub(crate) enum Meaning {
    /// These patterns.
    Patterns(Vec<String>),
    /// A tool that does nothing Ward decides about.
    Nothing,
    /// No tool at all.
    NotATool,
}

/// Reads `Read`, `Edit(src/**)`, `Bash(git log:*)`, `WebFetch(domain:example.com)`.
pub(crate) fn patterns(word: &str) -> Meaning {
    let (tool, argument) = match word.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (word, None),
    };
    let names: &[&str] = match tool {
        "Read" => &["fs.read"],
        "LS" => &["fs.list", "fs.stat"],
        "Glob" => &["fs.glob"],
        "Grep" => &["fs.search"],
        "Edit" | "MultiEdit" => &["fs.edit", "fs.patch"],
        "Write" => &["fs.write", "fs.mkdir"],
        // A command may want to reach a host, which then asks.
        "Bash" if argument.is_none() => &["terminal.run", "net"],
        "Bash" => &["terminal.run"],
        "BashOutput" => &["terminal.read", "terminal.list"],
        "KillBash" | "KillShell" => &["terminal.stop"],
        "WebFetch" | "WebSearch" => &["net"],
        "Agent" | "AskUserQuestion" | "ExitPlanMode" | "NotebookEdit" | "NotebookRead"
        | "Skill" | "SlashCommand" | "Task" | "TodoRead" | "TodoWrite" => return Meaning::Nothing,
        tool if tool.starts_with("mcp__") => return Meaning::Nothing,
        _ => return Meaning::NotATool,
    };
    let argument = argument.map(|argument| match tool {
        "Bash" => argument.replace(":*", " *"),
        "WebFetch" => argument.trim_start_matches("domain:").to_owned(),
        _ => argument.trim_start_matches("./").to_owned(),
    });
    Meaning::Patterns(
        names
            .iter()
            .map(|name| match &argument {
                Some(argument) => format!("{name}({argument})"),
                None => (*name).to_owned(),
            })
            .collect(),
    )
}
