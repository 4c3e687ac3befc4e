//! Role, skill and rule files: what they mean, and what is said about their mistakes.

mod support;

use policy::{Mistake, Mode, Role, Roles, Rules, SkillFile, Source, Weight, builtin};

fn read(text: &str) -> Result<Role, String> {
    match policy::role::read(text, "dev.md", "dev", Source::Person, &[]) {
        Ok((role, mistakes)) if mistakes.is_empty() => Ok(role),
        Ok((_, mistakes)) | Err(mistakes) => Err(told(&mistakes)),
    }
}

fn told(mistakes: &[Mistake]) -> String {
    let weight = |mistake: &Mistake| match mistake.weight {
        Weight::Error => "error",
        Weight::Note => "note",
    };
    let lines = mistakes
        .iter()
        .map(|mistake| format!("{}: {mistake}", weight(mistake)));
    lines.collect::<Vec<_>>().join("\n")
}

fn skills(role: &Role) -> Vec<String> {
    role.skills
        .iter()
        .map(|skill| format!("{}:{}", skill.origin.line, skill.pattern))
        .collect()
}

#[test]
fn the_built_ins_can_be_read_without_a_mistake() {
    let roles = builtin::roles();
    assert_eq!(roles.mistakes(), []);
    let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    assert_eq!(names, ["architect", "backend", "system_agent", "watcher"]);
    assert!(roles.get(builtin::DEFAULT_ROLE).is_ok());
    assert!(builtin::rules().is_ok());
}

#[test]
fn a_role_is_its_front_matter_and_its_body() {
    let role = read(
        "---\nname: tester\ndescription: Tests\nmodel: big\nprovider: acme\nmode: full\n\
         skills:\n  - fs.read\n  - terminal.run(cargo test *)\nlimits:\n  turns: 50\n  tokens: 200000\n  \
         cost: 2.50\n  time: 30m\n---\n\n# Test\nDo test.\n",
    )
    .unwrap();
    assert_eq!(role.name.as_str(), "tester");
    assert_eq!(
        (role.model.as_deref(), role.provider.as_deref()),
        (Some("big"), Some("acme"))
    );
    assert_eq!(role.mode, Mode::Full);
    assert_eq!(skills(&role), ["8:fs.read", "9:terminal.run(cargo test *)"]);
    assert_eq!(role.limits.cost_micros, Some(2_500_000));
    assert_eq!(role.limits.seconds, Some(1_800));
    assert_eq!(role.instructions, "# Test\nDo test.");
}

#[test]
fn other_spellings_that_exist_are_understood() {
    let role = read(
        "---\nid: x\ncapabilities:\n  skills: [fs.read]\nmodels:\n  default: big\nmodel:\n  provider: acme\n---\n",
    )
    .unwrap();
    assert_eq!(role.name.as_str(), "x");
    assert_eq!(
        (role.model.as_deref(), role.provider.as_deref()),
        (Some("big"), Some("acme"))
    );
    assert_eq!(skills(&role), ["4:fs.read"]);
    assert_eq!(
        read("---\nskills: fs.read\n---\n").unwrap().name.as_str(),
        "dev"
    );
}

#[test]
fn agent_files_of_claude_code_are_understood() {
    let role = read(
        "---\nname: r\ndescription: d\ntools: Read, Edit(src/**), Bash(git log:*)\nmodel: opus\ncolor: red\n---\nHi\n",
    );
    assert_eq!(
        skills(&role.unwrap()),
        [
            "4:fs.read",
            "4:fs.edit(src/**)",
            "4:fs.patch(src/**)",
            "4:terminal.run(git log *)"
        ]
    );
    let noted = read("---\ntools: Read, Task, mcp__x__y\n---\n");
    insta::assert_snapshot!(noted.unwrap_err());
}

#[test]
fn agent_files_of_claude_code_are_taken_as_people_write_them() {
    let at = |file: &str, text: &str| {
        let read = policy::role::read(text, file, "dev", Source::Person, &[]);
        read.map_err(|mistakes| told(&mistakes))
    };
    let theirs = ".claude/agents/reviewer.md";
    let text = "---\nname: reviewer\n\
        description: Use it: it's for reviews. Examples: <example>Context: a change: \\nuser: \"Look\"</example>\n\
        tools: Read, Edit, Bash(git log:*), ListMcpResourcesTool, ReadMcpResourceTool, TodoWrite, mcp__x__y\n\
        disallowedTools: Edit, Bash, Newest\nhooks:\n  PreToolUse:\n    - matcher: Bash\n\
        maxTurns: 7\npermissionMode: plan\ncolor: red\nmemory: user\n---\nHi\n";
    let (role, mistakes) = at(theirs, text).unwrap();
    assert_eq!(
        role.description,
        "Use it: it's for reviews. Examples: <example>Context: a change: \\nuser: \"Look\"</example>"
    );
    assert_eq!(skills(&role), ["4:fs.read"]);
    assert_eq!(role.limits.turns, Some(7));
    assert_eq!(
        told(&mistakes),
        [
            "note: .claude/agents/reviewer.md, line 4: The tool `ListMcpResourcesTool` is none that Ward knows. It is ignored.",
            "note: .claude/agents/reviewer.md, line 4: The tool `ReadMcpResourceTool` is none that Ward knows. It is ignored.",
            "note: .claude/agents/reviewer.md, line 4: The tool `TodoWrite` is none of Ward's actions. It is ignored.",
            "note: .claude/agents/reviewer.md, line 4: The tool `mcp__x__y` is none of Ward's actions. It is ignored.",
            "note: .claude/agents/reviewer.md, line 6: `hooks` does nothing in Ward. It is ignored.",
            "note: .claude/agents/reviewer.md, line 5: The tool `Newest` is none that Ward knows. It is ignored.",
        ]
        .join("\n")
    );
    // What is disallowed never stays because it cannot be told from the rest.
    let wide = "---\ntools: '*'\ndisallowedTools: Bash\n---\n";
    assert_eq!(
        at(theirs, wide).unwrap_err(),
        "error: .claude/agents/reviewer.md, line 3: `Bash` cannot be taken out of `*`. Name the tools that it may use."
    );
    // Elsewhere a key or a word that is not known stays a mistake.
    for text in [
        "---\ndescription: a: b\n---\n",
        "---\ntools: ListMcpResourcesTool\n---\n",
        "---\nmaxTurns: 7\n---\n",
        "---\nhooks: x\n---\n",
    ] {
        assert!(at(".ward/roles/dev.md", text).is_err(), "{text}");
    }
}

#[test]
fn a_skill_folder_gives_its_name_to_its_patterns() {
    let text =
        "---\nname: release\ndescription: d\nallowed-tools: Bash(git tag:*) Read\n---\nHow to\n";
    let (file, mistakes) =
        SkillFile::read(text, "release/SKILL.md", "release", Source::Person).unwrap();
    assert_eq!(mistakes, []);
    let text = "---\nskills: [release, fs.list]\n---\n";
    let (role, _) = policy::role::read(text, "dev.md", "dev", Source::Person, &[file]).unwrap();
    assert_eq!(
        skills(&role),
        ["4:terminal.run(git tag *)", "4:fs.read", "2:fs.list"]
    );
    assert_eq!(role.skills[0].origin.file, "release/SKILL.md");
}

#[test]
fn every_mistake_is_told_with_its_line_and_a_hint() {
    let mistakes = [
        "no front matter",
        "---\nname: x\n",
        "---\nname: [\n---\n",
        "---\n- a\n---\n",
        "---\nname: a b\n---\n",
        "---\nskill: [fs.read]\n---\n",
        "---\nskills:\n  - fs.raed\n  - fs.write(src/[)\n  - fs.write(\n  - terminal.open(x)\n  - net(http://a)\n  - fly\n---\n",
        "---\nmode: sandboxed\n---\n",
        "---\nlimits:\n  turns: many\n  time: 5 days\n  tuns: 3\n---\n",
        "---\nlimits: 5\n---\n",
        "---\nname: a\n...\nmode: full\n---\n",
        "---\nname: a\nname: b\n---\n",
        "---\na: &x [1]\nb: *x\n---\n",
        "---\na: [[[[[[[[[[1]]]]]]]]]]\n---\n",
        "---\nskills:\n  - net: x\n---\n",
    ]
    .map(|text| read(text).unwrap_err());
    insta::assert_snapshot!(mistakes.join("\n"));
}

#[test]
fn of_two_roles_with_one_name_the_weightier_wins_and_that_is_said() {
    let text = |what: &str| format!("---\nname: backend\ndescription: {what}\n---\n");
    let mut roles = builtin::roles();
    roles.read(
        &text("workspace's"),
        ".ward/roles/a.md",
        "a",
        Source::Trusted,
        &[],
    );
    roles.read(&text("mine"), "~/roles/a.md", "a", Source::Person, &[]);
    roles.read(&text("mine too"), "~/roles/b.md", "b", Source::Person, &[]);
    assert_eq!(roles.get("backend").unwrap().description, "mine");
    insta::assert_snapshot!(told(roles.mistakes()));
}

#[test]
fn an_untrusted_role_is_seen_but_cannot_be_used() {
    let mut roles = Roles::default();
    roles.read(
        "---\nname: x\n---\n",
        ".ward/roles/x.md",
        "x",
        Source::Untrusted,
        &[],
    );
    assert_eq!(roles.iter().count(), 1);
    insta::assert_snapshot!(
        roles.get("x").unwrap_err().to_string() + "\n" + &roles.get("y").unwrap_err().to_string()
    );
}

#[test]
fn a_role_whose_file_has_mistakes_is_not_merely_unknown() {
    let mut roles = builtin::roles();
    roles.read(
        "---\nmodle: x\n---\n",
        "dev2.md",
        "dev2",
        Source::Person,
        &[],
    );
    roles.read(
        "---\nname: named\nmode: no\n---\n",
        "x.md",
        "x",
        Source::Person,
        &[],
    );
    roles.read("no front matter", "y.md", "y", Source::Person, &[]);
    for (name, file) in [("dev2", "dev2.md"), ("named", "x.md"), ("y", "y.md")] {
        assert_eq!(
            roles.get(name).unwrap_err().to_string(),
            format!(
                "The role `{name}` cannot be used, because its file {file} has mistakes. `ward roles check` tells them."
            )
        );
    }
}

#[test]
fn an_agent_file_of_claude_code_without_tools_is_noted() {
    let noted = |text: &str, file: &str| {
        let (role, mistakes) = policy::role::read(text, file, "a", Source::Person, &[]).unwrap();
        (role.skills.len(), told(&mistakes))
    };
    let file = ".claude/agents/a.md";
    let told = "note: .claude/agents/a.md, line 1: It names no `tools`: all of them in Claude Code, none in Ward, so that this role may do nothing. Name what it may use, such as `tools: Read, Grep, Bash`.";
    assert_eq!(noted("---\nname: a\n---\n", file), (0, told.to_owned()));
    for text in ["---\ntools: Read\n---\n", "---\ntools: []\n---\n"] {
        assert_eq!(noted(text, file).1, "", "{text}");
    }
    assert_eq!(noted("---\nname: a\n---\n", "a.md"), (0, String::new()));
}

#[test]
fn an_untrusted_role_never_takes_the_place_of_another() {
    let mut roles = builtin::roles();
    roles.read(
        "---\nname: watcher\nskills: ['*']\n---\n",
        "w.md",
        "w",
        Source::Untrusted,
        &[],
    );
    assert_eq!(roles.get("watcher").unwrap().origin.source, Source::Builtin);
}

#[test]
fn mistakes_in_rules_refuse_the_file_and_are_told() {
    let told = [
        "[[rules]]\nallow = \"fs.read\"\ndeny = \"fs.write\"\n",
        "[[rules]]\nreason = \"x\"\n",
        "[[rules]]\n\ndeny = \"fs.wite(a)\"\n[[rules]]\nask = \"net(a b)\"\n",
        "[[rule]]\ndeny = \"fs.write\"\n",
        "[[rules]]\ndenny = \"fs.write\"\n",
        "[[rules]]\ndeny = 3\n",
        "rules = \n",
        "rules = 3\n",
        "rules = [3]\n",
        "[[rules]]\ndeny = \"a\n\n[[rules]\n",
        // Every one of them is told.
        "[[rules]]\nallow = \"terminal.run(ls\"\n\n[[rules]]\nallow = \"fs.nope\"\n\n[[rules]]\n\
         reason = \"x\"\n\n[[rules]]\nallow = \"fs.read\"\ndeny = \"fs.wirte\"\n\n[[rules]]\n\
         deny = \"fs.write\"\nresaon = \"x\"\n\n[more]\n",
    ]
    .map(|text| told(&Rules::read(text, "rules.toml", Source::Person).unwrap_err()));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_rule_knows_its_file_and_line() {
    let text = "# mine\n[[rules]]\nreason = \"why\"\ndeny = \"fs.write(a)\"\n";
    let rules = Rules::read(text, "rules.toml", Source::Person).unwrap();
    let rule = rules.iter().next().unwrap();
    assert_eq!(
        (rule.origin.to_string().as_str(), rule.reason.as_str()),
        ("rules.toml:4", "why")
    );
}
