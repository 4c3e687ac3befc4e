//! Holds `ward serve` against the document that describes it: schemathesis (from PyPI) sends what
//! the document allows and what it does not, and no answer may be a 500 or one that is not in it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::cache::Places;
use crate::{run, venv};

const PACKAGE: &str = "schemathesis==4.32.5";
/// How many requests are made up for each operation.
const EXAMPLES: &str = "100";
/// Those that never end by themselves; what they answer is tested elsewhere.
const ENDLESS: &str = r"^/(approvals|ledger)/events$|^/(sessions|notebooks)/\{id\}/events$";
/// What keeps requests from waiting for a person.
const HOOKS: &str = "tests/python/without_waiting.py";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,unsupported_method";

/// Gets schemathesis, starts Ward and lets the one try the other.
pub(crate) fn run(places: &Places) -> anyhow::Result<()> {
    let program = venv::install(places, &[PACKAGE])?.join("schemathesis");
    let home = places.cache.join("schemathesis-home");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(home.join("work"))?;
    let serving = Serving::start(places, &home)?;
    let token = fs::read_to_string(home.join(".config/ward/token"))?;
    run::run(
        Command::new(program)
            .arg("run")
            .arg(format!("http://{}/openapi.json", serving.address))
            .args(["--checks", CHECKS, "--exclude-path-regex", ENDLESS])
            .args(["--max-examples", EXAMPLES, "--request-timeout", "90"])
            .arg("--header")
            .arg(format!("Authorization: Bearer {}", token.trim()))
            .env("SCHEMATHESIS_HOOKS", places.root.join(HOOKS))
            .current_dir(&home),
        "It prints the request that was answered so; make it a test in crates/server/tests before mending.",
    )
}

/// A Ward on a free port; it is gone when this is.
struct Serving {
    ward: Child,
    address: String,
}

impl Serving {
    fn start(places: &Places, home: &Path) -> anyhow::Result<Self> {
        let mut ward = Command::new(places.built("debug", "ward"))
            .args(["serve", "--addr", "127.0.0.1:0", "--no-open"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .current_dir(home.join("work"))
            .stdout(Stdio::piped())
            .spawn()
            .context("Ward could not be started")?;
        let mut line = String::new();
        if let Some(out) = ward.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let address = line.trim().strip_prefix("Ward is on http://");
        let address = address.context("Ward did not say where it is")?.to_owned();
        Ok(Self { ward, address })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.ward.kill();
        let _ = self.ward.wait();
    }
}
