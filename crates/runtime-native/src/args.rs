//! The arguments of an agent: flags, then the environment, then what is found in the config folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::owner;

/// The name of the file with the first person's own token, in the config folder.
const TOKEN_FILE: &str = "token";
/// Where Ward is, unless somebody says otherwise.
const USUAL: &str = "http://127.0.0.1:3000";

/// What an agent has to know.
#[derive(Clone, PartialEq, Eq)]
pub struct RuntimeArgs {
    /// Where Ward is.
    pub url: String,
    /// The person's token.
    pub token: String,
    /// Whether it was found in the config folder. It is then for a Ward that this user, or root, runs
    /// on this machine, and goes to nobody else.
    pub found: bool,
    /// The id of the person whose agent this is.
    pub client_id: String,
    /// Which notebook.
    pub notebook: String,
    /// Which runtime, in its own words.
    pub runtime_id: Option<String>,
    /// What runs the cells: `echo`, `python`, or the name of a Jupyter kernel.
    pub kernel: String,
}

impl RuntimeArgs {
    /// Whether Ward is on this machine, by its address.
    #[must_use]
    pub fn is_here(&self) -> bool {
        owner::is_here(&self.url)
    }
}

impl std::fmt::Debug for RuntimeArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeArgs")
            .field("url", &self.url)
            .field("client_id", &self.client_id)
            .field("notebook", &self.notebook)
            .field("runtime_id", &self.runtime_id)
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

/// Why arguments cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadArgs {
    /// They cannot be read; also help, which is no failure.
    #[error("{0}")]
    Flags(#[from] clap::Error),
    /// Something is missing.
    #[error("{what} is missing. Give it with {flag}, or as {variable}.")]
    Missing {
        /// What.
        what: &'static str,
        /// The flag for it.
        flag: &'static str,
        /// The variable for it.
        variable: &'static str,
    },
    /// There is no token anywhere.
    #[error(
        "There is no token: neither --token nor WARD_TOKEN is given, and {} has none. `ward tokens add --person NAME` makes one.",
        .0.display()
    )]
    NoToken(PathBuf),
    /// The token that was found is for this machine's Ward.
    #[error(
        "The token in {} is for a Ward on this machine, and {url} is elsewhere. Give the one for it with --token or WARD_TOKEN.",
        .file.display()
    )]
    Elsewhere {
        /// Where it was found.
        file: PathBuf,
        /// Where Ward is.
        url: String,
    },
    /// The address cannot be one.
    #[error("`{0}` is no address of Ward's, such as {USUAL}.")]
    Url(String),
}

impl BadArgs {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Flags(_) | Self::Missing { .. } | Self::Url(_) => "invalid_params",
            Self::NoToken(_) | Self::Elsewhere { .. } => "unauthorized",
        }
    }
}

/// The flags of an agent.
#[derive(Debug, Default, Parser)]
#[command(no_binary_name = true, disable_version_flag = true)]
pub(crate) struct Flags {
    /// Where Ward is
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The person's token; better in WARD_TOKEN, where other users of the machine do not see it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// The id of the person whose agent this is: yours
    #[arg(long, value_name = "USER")]
    client_id: Option<String>,
    /// Which notebook
    #[arg(long, value_name = "ID")]
    notebook: Option<String>,
    /// What this runtime is called
    #[arg(long, value_name = "NAME")]
    runtime_id: Option<String>,
    /// What runs the cells: echo, python, or an installed Jupyter kernel
    #[arg(long, value_name = "KERNEL", default_value = "python")]
    kernel: String,
}

/// Reads an agent's arguments: a flag wins over the environment (`WARD_URL`, `WARD_TOKEN`,
/// `WARD_CLIENT_ID`, `WARD_NOTEBOOK`), and that over the token in the config folder. `variable`
/// gives the environment.
pub fn parse_runtime_args(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    variable: impl Fn(&str) -> Option<String>,
    config: &Path,
) -> Result<RuntimeArgs, BadArgs> {
    let flags = Flags::try_parse_from(args)?;
    let given = |flag: Option<String>, name: &str| {
        flag.or_else(|| variable(name))
            .filter(|value| !value.is_empty())
    };
    let missing = |what, flag, variable| BadArgs::Missing {
        what,
        flag,
        variable,
    };
    let url = given(flags.url, "WARD_URL").unwrap_or_else(|| USUAL.to_owned());
    let url = url.trim_end_matches('/').to_owned();
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(BadArgs::Url(url));
    }
    let notebook = given(flags.notebook, "WARD_NOTEBOOK")
        .ok_or_else(|| missing("The notebook", "--notebook", "WARD_NOTEBOOK"))?;
    let client_id = given(flags.client_id, "WARD_CLIENT_ID").ok_or_else(|| {
        missing(
            "The id of whose agent this is",
            "--client-id",
            "WARD_CLIENT_ID",
        )
    })?;
    let file = config.join(TOKEN_FILE);
    let in_file = || {
        let text = std::fs::read_to_string(&file).ok()?;
        Some(text.trim().to_owned()).filter(|token| !token.is_empty())
    };
    let (token, found) = match given(flags.token, "WARD_TOKEN") {
        Some(token) => (token, false),
        None => match in_file() {
            Some(_) if !owner::is_here(&url) => return Err(BadArgs::Elsewhere { file, url }),
            Some(token) => (token, true),
            None => return Err(BadArgs::NoToken(file)),
        },
    };
    Ok(RuntimeArgs {
        url,
        token,
        found,
        client_id,
        notebook,
        runtime_id: flags.runtime_id,
        kernel: flags.kernel,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str], env: &[(&str, &str)], config: &Path) -> Result<RuntimeArgs, BadArgs> {
        let variable = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        parse_runtime_args(args, variable, config)
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_config_folder() {
        let config = tempfile::tempdir().unwrap();
        std::fs::write(config.path().join("token"), "from-file\n").unwrap();
        let env = [
            ("WARD_URL", "http://127.0.0.1:4000/"),
            ("WARD_CLIENT_ID", "ada"),
            ("WARD_NOTEBOOK", "env-book"),
        ];
        let read = parse(&["--notebook", "flag-book"], &env, config.path()).unwrap();
        assert_eq!(read.url, "http://127.0.0.1:4000");
        assert_eq!(read.notebook, "flag-book");
        assert_eq!(read.client_id, "ada");
        assert_eq!((read.token.as_str(), read.found), ("from-file", true));
        assert_eq!(read.kernel, "python");
        let env = [("WARD_TOKEN", "from-env")];
        let flags = ["--notebook", "n", "--client-id", "ada"];
        assert_eq!(
            parse(&flags, &env, config.path()).unwrap().token,
            "from-env"
        );
        let flags = [
            "--notebook",
            "n",
            "--client-id",
            "ada",
            "--token",
            "from-flag",
        ];
        assert_eq!(
            parse(&flags, &env, config.path()).unwrap().token,
            "from-flag"
        );
    }

    #[test]
    fn the_client_id_is_never_made_up_and_what_is_missing_is_named() {
        let config = tempfile::tempdir().unwrap();
        let told = parse(
            &["--notebook", "n"],
            &[("WARD_TOKEN", "t"), ("USER", "ada")],
            config.path(),
        );
        let told = told.unwrap_err().to_string();
        assert!(
            told.contains("--client-id") && told.contains("WARD_CLIENT_ID"),
            "{told}"
        );
        let told = parse(&["--notebook", "n", "--client-id", "a"], &[], config.path());
        assert_eq!(told.unwrap_err().kind(), "unauthorized");
        let flags = ["--notebook", "n", "--client-id", "a", "--url", "ftp://x"];
        assert!(parse(&flags, &[("WARD_TOKEN", "t")], config.path()).is_err());
    }

    #[test]
    fn only_a_loopback_address_is_this_machine() {
        let here = |url: &str| {
            let flags = ["--notebook", "n", "--client-id", "a", "--url", url];
            let env = [("WARD_TOKEN", "t")];
            parse(&flags, &env, Path::new("/nowhere"))
                .unwrap()
                .is_here()
        };
        for url in [
            "http://127.0.0.1:3000",
            "http://localhost:1",
            "http://[::1]:3000",
        ] {
            assert!(here(url), "{url}");
        }
        for url in [
            "http://10.0.0.1:3000",
            "https://ward.example",
            "http://localhost.example",
            "http://127.0.0.1@ward.example",
        ] {
            assert!(!here(url), "{url}");
        }
    }

    #[test]
    fn a_token_that_was_found_goes_to_no_other_machine() {
        let config = tempfile::tempdir().unwrap();
        std::fs::write(config.path().join("token"), "from-file\n").unwrap();
        let flags = [
            "--notebook",
            "n",
            "--client-id",
            "a",
            "--url",
            "http://10.0.0.1:3000",
        ];
        let told = parse(&flags, &[], config.path()).unwrap_err();
        assert!(matches!(told, BadArgs::Elsewhere { .. }), "{told}");
        let given = parse(&flags, &[("WARD_TOKEN", "t")], config.path()).unwrap();
        assert_eq!((given.token.as_str(), given.found), ("t", false));
    }

    #[test]
    fn the_token_is_not_in_what_is_printed_for_debugging() {
        let config = tempfile::tempdir().unwrap();
        let flags = [
            "--notebook",
            "n",
            "--client-id",
            "a",
            "--token",
            "secret-token",
        ];
        let read = parse(&flags, &[], config.path()).unwrap();
        assert!(!format!("{read:?}").contains("secret-token"));
    }
}
