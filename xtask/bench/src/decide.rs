//! A decision with a thousand rules: most of them about other folders, programs and hosts, as in a
//! policy that a team has kept for years, and some with wildcards that have to be looked at always.

use std::time::Instant;

use anyhow::{Context as _, anyhow};
use policy::{
    Asked, Authority, Confinement, Decision, Grant, Mode, Pattern, Place, Role, RoleName, Rules,
    Scope, Source, Time, Verb,
};
use protocol::facts::{Access, CommandFact, EntryKind, PathFact};
use protocol::{ActionName, Facts};

use crate::row::{Row, Target, Unit};
use crate::samples::Samples;
use crate::stage::Stage;

const RULES: usize = 1_000;
/// At most this at the median.
const WANTED: f64 = 20e-6;

const PLACE: Place<'static> = Place {
    workspace: "/home/ada/src/shop",
    home: Some("/home/ada"),
    own: &[],
};

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let scene = Scene::new()?;
    let mut all = Samples::default();
    let mut rows = Vec::new();
    for (name, questions) in questions() {
        let mut samples = Samples::default();
        for round in 0..=stage.rounds(2_000) {
            for (mode, question) in [Mode::Sandbox, Mode::Full]
                .into_iter()
                .flat_map(|mode| questions.iter().map(move |question| (mode, question)))
            {
                let started = Instant::now();
                let decision = scene.decide(mode, std::hint::black_box(question));
                let took = started.elapsed().as_secs_f64();
                std::hint::black_box(decision);
                // The first warms up.
                if round > 0 {
                    samples.add(took);
                    all.add(took);
                }
            }
        }
        let what = format!("(a) decide with 1,000 rules: {name}");
        rows.push(Row::alone(
            &what,
            Unit::Seconds,
            &samples,
            Target::Below(WANTED),
        ));
    }
    let what = "(a) decide with 1,000 rules: all of these";
    rows.insert(
        0,
        Row::alone(what, Unit::Seconds, &all, Target::Below(WANTED)),
    );
    Ok(rows)
}

struct Scene {
    role: Role,
    rules: Rules,
    grants: Vec<Grant>,
}

struct Question {
    verb: Verb,
    facts: Facts,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        let told = |mistakes: Vec<policy::Mistake>| {
            let first = mistakes.first().map(ToString::to_string);
            anyhow!(first.unwrap_or_default())
        };
        let role = "---\nname: dev\nmode: full\nskills: [fs.read, fs.list, fs.search, fs.write, \
            fs.edit, fs.delete, terminal.run, terminal.open, net]\n---\nDo.\n";
        let (role, _) =
            policy::role::read(role, "dev.md", "dev", Source::Person, &[]).map_err(told)?;
        let mut rules = policy::builtin::rules().map_err(told)?;
        let own = Rules::read(&rules_text(), "rules.toml", Source::Person).map_err(told)?;
        rules.extend(own);
        let grant = |(number, pattern): (usize, &str)| {
            Ok(Grant {
                id: format!("g{number}"),
                pattern: Pattern::parse(pattern)?,
                role: RoleName::parse("dev")?,
                scope: Scope::Session("s1".to_owned()),
                expires: None,
            })
        };
        let grants: anyhow::Result<Vec<Grant>> = [
            "terminal.run(cargo test *)",
            "terminal.run(git fetch *)",
            "terminal.run(npm run lint *)",
            "fs.write(docs/**)",
            "fs.read(/etc/hosts)",
            "net(registry.npmjs.org:443)",
            "net(index.crates.io:443)",
            "terminal.run(=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855)",
        ]
        .into_iter()
        .enumerate()
        .map(grant)
        .collect();
        Ok(Self {
            role,
            rules,
            grants: grants.context("a grant cannot be read")?,
        })
    }

    fn decide(&self, mode: Mode, question: &Question) -> Decision {
        let asked = Asked {
            verb: question.verb,
            facts: &question.facts,
            place: PLACE,
            session: Some("s1"),
            confinement: Confinement::Kernel,
        };
        policy::decide(
            &Authority::of(&self.role),
            mode,
            &self.rules,
            &self.grants,
            &asked,
            Time(0),
        )
    }
}

fn rules_text() -> String {
    let verdict = |number: usize| ["deny", "ask", "allow"][number % 3];
    // Those that anything of their kind has to be held against.
    let wild = [
        ("deny", "fs.read(**/*.pem)"),
        ("deny", "fs.read(**/.env)"),
        ("deny", "fs.read(**/*.{key,p12,pfx})"),
        ("ask", "fs.write(**/migrations/**)"),
        ("ask", "fs.write(**/Cargo.lock)"),
        ("deny", "fs.*(~/.ssh/**)"),
        ("deny", "fs.*(~/.aws/**)"),
        ("deny", "fs.write(/etc/**)"),
        ("ask", "fs.delete"),
        ("deny", "terminal.run(* --force)"),
        ("deny", "terminal.run(* --no-verify *)"),
        ("ask", "terminal.run(*sum *)"),
        ("ask", "terminal.run(mkfs.* *)"),
        ("deny", "net(*.internal)"),
        ("ask", "net(*.example.com:22)"),
        ("deny", "net(169.254.169.254)"),
        ("deny", "terminal.run(git push *)"),
        ("ask", "terminal.run(git commit *)"),
        ("allow", "terminal.run(git status *)"),
        ("allow", "terminal.run(git log *)"),
        ("allow", "terminal.run(git diff *)"),
        ("allow", "terminal.run(cargo test *)"),
        ("allow", "terminal.run(cargo check *)"),
        ("deny", "terminal.run(cargo publish *)"),
        ("ask", "terminal.run(npm install *)"),
        ("allow", "fs.write(src/**)"),
        ("ask", "fs.write(src/payments/**)"),
    ];
    let mut rules: Vec<(&str, String)> = wild
        .iter()
        .map(|(verdict, pattern)| (*verdict, (*pattern).to_owned()))
        .collect();
    for number in rules.len()..RULES {
        let pattern = match number % 20 {
            0 | 1 => format!("fs.write(src/part{number}/**)"),
            2..=6 => format!("fs.write(services/team{number}/**/*.rs)"),
            7 => format!("fs.read(vendor{number}/**)"),
            8 => format!("fs.write(/srv/data{number}/**)"),
            9 => format!("fs.read(~/other/project{number}/**)"),
            10..=13 => format!("terminal.run(tool{number} deploy *)"),
            14 => format!("terminal.run(cargo task{number} *)"),
            15 => format!("terminal.run(npm run job{number} *)"),
            16 | 17 => format!("net(service{number}.example.com:443)"),
            18 => format!("net(*.team{number}.example.org)"),
            _ => format!("fs.write(**/generated{number}/**)"),
        };
        rules.push((verdict(number), pattern));
    }
    rules
        .iter()
        .map(|(verdict, pattern)| {
            format!("[[rules]]\n{verdict} = \"{pattern}\"\nreason = \"As agreed in the team.\"\n")
        })
        .collect()
}

fn questions() -> Vec<(&'static str, Vec<Question>)> {
    use ActionName::{FsDelete, FsEdit, FsRead, FsSearch, FsWrite};
    let at = |name: &str| format!("{}/{name}", PLACE.workspace);
    vec![
        (
            "a path",
            vec![
                file(FsRead, Access::Read, &at("src/cart/total.rs")),
                file(FsRead, Access::Read, &at("services/team42/src/api/main.rs")),
                file(FsEdit, Access::Write, &at("src/cart/total.rs")),
                file(FsWrite, Access::Write, &at("docs/guide/start.md")),
                file(FsWrite, Access::Write, "/home/ada/notes/today.md"),
                file(FsRead, Access::Read, "/etc/hosts"),
                file(FsDelete, Access::Delete, &at("out/log")),
                folder(FsSearch, &at("src")),
            ],
        ),
        (
            "a command",
            vec![
                line("cargo test -p cart"),
                line("git status --short"),
                line("ls -la src/cart"),
                line("npm run build"),
                line("python3 tools/check.py --all"),
                argv(&["rustc", "--version"]),
            ],
        ),
        (
            "a line of several",
            vec![
                line("RUST_LOG=debug cargo test -p cart 2>&1 | tee out/log && git status"),
                line("cd src/cart && grep -rn total . | head -20"),
                line("sh -c 'cargo check; cargo test' > out/check.txt"),
                line("timeout 60 env CI=1 npm run lint | tail -5"),
            ],
        ),
        (
            "a line that cannot be known",
            vec![
                line("make $(cat flags)"),
                line("for f in src/*.rs; do wc -l \"$f\"; done"),
                line("eval \"$SETUP\" && cargo test"),
            ],
        ),
        (
            "a host",
            vec![
                host("registry.npmjs.org:443"),
                host("api.example.com:22"),
                host("service316.example.com:443"),
                host("unknown.example.net:80"),
            ],
        ),
    ]
}

fn fact(access: Access, path: &str, kind: EntryKind) -> Facts {
    Facts {
        paths: vec![PathFact {
            path: path.to_owned(),
            access,
            kind: Some(kind),
            digest: None,
        }],
        ..Facts::default()
    }
}

fn file(action: ActionName, access: Access, path: &str) -> Question {
    Question {
        verb: Verb::Action(action),
        facts: fact(access, path, EntryKind::File),
    }
}

fn folder(action: ActionName, path: &str) -> Question {
    Question {
        verb: Verb::Action(action),
        facts: fact(Access::Read, path, EntryKind::Directory),
    }
}

fn line(text: &str) -> Question {
    let mut question = argv(&["/bin/sh", "-c", text]);
    if let Some(command) = &mut question.facts.command {
        command.line = Some(text.to_owned());
    }
    question
}

fn argv(words: &[&str]) -> Question {
    let command = CommandFact {
        line: None,
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        program: Some("/usr/bin/sh".to_owned()),
        cwd: PLACE.workspace.to_owned(),
        env: [].into(),
    };
    Question {
        verb: Verb::Action(ActionName::TerminalRun),
        facts: Facts {
            command: Some(command),
            ..Facts::default()
        },
    }
}

fn host(name: &str) -> Question {
    Question {
        verb: Verb::Net,
        facts: Facts {
            hosts: vec![name.to_owned()],
            ..Facts::default()
        },
    }
}
