//! Jupyter kernels that are installed, found as Jupyter finds them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jupyter_protocol::JupyterKernelspec;

/// The largest `kernel.json`.
const MAX_FILE: u64 = 1 << 20;
/// What stands in `argv` for the file that says where the sockets are.
pub(crate) const CONNECTION_FILE: &str = "{connection_file}";

/// A kernel that is installed.
#[derive(Debug, Clone)]
pub struct KernelSpec {
    /// Its name, which is its folder's.
    pub name: String,
    /// The folder of `kernel.json`.
    pub folder: PathBuf,
    /// What runs it, with places for the connection file.
    pub argv: Vec<String>,
    /// Variables for it.
    pub env: BTreeMap<String, String>,
    /// Its language.
    pub language: String,
    /// What people call it.
    pub display_name: String,
    /// Whether it is interrupted by a message; else by a signal.
    pub interrupted_by_message: bool,
    /// The environment that it is part of, such as a venv: all of it is to be read.
    pub prefix: Option<PathBuf>,
}

/// There is no such kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "There is no Jupyter kernel `{name}` here. {}{}",
    installed(.there),
    advice(.name)
)]
pub struct NoKernel {
    /// What was looked for.
    pub name: String,
    /// What there is.
    pub there: Vec<String>,
}

impl NoKernel {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        "not_found"
    }
}

fn installed(there: &[String]) -> String {
    match there.is_empty() {
        true => "None is installed. ".to_owned(),
        false => format!("Installed: {}. ", there.join(", ")),
    }
}

fn advice(name: &str) -> &'static str {
    match name {
        "python" | "python3" => {
            "Install one with `python3 -m venv .venv && .venv/bin/pip install ipykernel` and `export VIRTUAL_ENV=$PWD/.venv`."
        }
        _ => "`jupyter kernelspec list` shows what Jupyter finds.",
    }
}

/// Where kernels are looked for: data folders of Jupyter's, the first wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specs {
    folders: Vec<PathBuf>,
}

impl Specs {
    /// The folders that Jupyter looks in, by the environment that `variable` gives: `JUPYTER_PATH`,
    /// the active environment's, the user's, the system's.
    pub fn usual(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut folders: Vec<PathBuf> = Vec::new();
        let mut add = |folder: PathBuf| {
            if folder.is_absolute() && !folders.contains(&folder) {
                folders.push(folder);
            }
        };
        for folder in variable("JUPYTER_PATH")
            .iter()
            .flat_map(|all| all.split(':'))
        {
            add(folder.into());
        }
        for prefix in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            if let Some(prefix) = variable(prefix) {
                add(Path::new(&prefix).join("share/jupyter"));
            }
        }
        // A Python that comes first on the PATH brings its own kernel along, as `jupyter` does.
        for folder in variable("PATH").iter().flat_map(|path| path.split(':')) {
            let folder = Path::new(folder);
            if folder.join("python3").exists() {
                if let Some(prefix) = folder.parent() {
                    add(prefix.join("share/jupyter"));
                }
                break;
            }
        }
        match (variable("JUPYTER_DATA_DIR"), variable("XDG_DATA_HOME")) {
            (Some(folder), _) => add(folder.into()),
            (None, Some(data)) => add(Path::new(&data).join("jupyter")),
            (None, None) => {
                if let Some(home) = variable("HOME") {
                    add(Path::new(&home).join(".local/share/jupyter"));
                }
            }
        }
        add("/usr/local/share/jupyter".into());
        add("/usr/share/jupyter".into());
        Self { folders }
    }

    /// Only the kernels of one environment, such as a venv.
    #[must_use]
    pub fn of_environment(prefix: &Path) -> Self {
        Self {
            folders: vec![prefix.join("share/jupyter")],
        }
    }

    /// All kernels, the first of each name.
    #[must_use]
    pub fn list(&self) -> Vec<KernelSpec> {
        let mut found: Vec<KernelSpec> = Vec::new();
        for folder in &self.folders {
            let kernels = folder.join("kernels");
            let mut names: Vec<String> = std::fs::read_dir(&kernels)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect();
            names.sort();
            for name in names {
                let known = found.iter().any(|spec| spec.name == name);
                if !known && let Some(spec) = read(&kernels.join(&name), &name) {
                    found.push(spec);
                }
            }
        }
        found
    }

    /// The kernel of this name; `python` is whichever runs Python.
    pub fn find(&self, name: &str) -> Result<KernelSpec, NoKernel> {
        let all = self.list();
        let named = |spec: &&KernelSpec| spec.name == name;
        let found = all.iter().find(named).or_else(|| {
            let python = name == "python" || name == "python3";
            let mut all = all.iter();
            all.find(|spec| python && (spec.name == "python3" || spec.language == "python"))
        });
        found.cloned().ok_or_else(|| NoKernel {
            name: name.escape_debug().take(80).collect(),
            there: all.into_iter().map(|spec| spec.name).collect(),
        })
    }
}

/// Reads one kernel's file. What cannot be read is no kernel.
fn read(folder: &Path, name: &str) -> Option<KernelSpec> {
    let file = folder.join("kernel.json");
    if std::fs::metadata(&file).ok()?.len() > MAX_FILE {
        return None;
    }
    let text = std::fs::read(&file).ok()?;
    let spec: JupyterKernelspec = match serde_json::from_slice(&text) {
        Ok(spec) => spec,
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "a kernel's file cannot be read");
            return None;
        }
    };
    let mut argv = spec.argv;
    if !argv.iter().any(|word| word.contains(CONNECTION_FILE)) {
        return None;
    }
    // `<prefix>/share/jupyter/kernels/<name>`
    let prefix = folder.ancestors().nth(4).map(Path::to_owned);
    let prefix = prefix.filter(|prefix| is_environment(prefix));
    if let (Some(prefix), Some(program)) = (&prefix, argv.first_mut()) {
        let own = prefix.join("bin").join(&*program);
        // A kernel that a venv brings along is run by the venv's Python.
        if !program.contains('/') && own.exists() {
            *program = own.to_string_lossy().into_owned();
        }
    }
    let prefix = prefix.or_else(|| {
        let program = Path::new(argv.first()?);
        let prefix = program.parent()?.parent()?;
        (program.is_absolute() && is_environment(prefix)).then(|| prefix.to_owned())
    });
    Some(KernelSpec {
        name: name.to_owned(),
        folder: folder.to_owned(),
        argv,
        env: spec.env.unwrap_or_default().into_iter().collect(),
        language: spec.language,
        display_name: spec.display_name,
        interrupted_by_message: spec.interrupt_mode.as_deref() == Some("message"),
        prefix,
    })
}

/// Whether this is an environment of its own: a venv, or one of conda's.
fn is_environment(prefix: &Path) -> bool {
    prefix.join("pyvenv.cfg").is_file() || prefix.join("conda-meta").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(data: &Path, name: &str, argv: &str) {
        let folder = data.join("kernels").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            r#"{{"argv": [{argv}, "-f", "{{connection_file}}"], "display_name": "K", "language": "python"}}"#
        );
        std::fs::write(folder.join("kernel.json"), text).unwrap();
    }

    fn specs(folder: &Path) -> Specs {
        let path = folder.display().to_string();
        Specs::usual(move |name| match name {
            "JUPYTER_PATH" => Some(format!("{path}/first:{path}/second:relative")),
            "VIRTUAL_ENV" => Some(format!("{path}/venv")),
            "JUPYTER_DATA_DIR" => Some(format!("{path}/user")),
            _ => None,
        })
    }

    #[test]
    fn kernels_are_found_where_jupyter_looks_and_the_first_of_a_name_wins() {
        let folder = tempfile::tempdir().unwrap();
        kernel(&folder.path().join("second"), "a", r#""/second""#);
        kernel(&folder.path().join("user"), "a", r#""/user""#);
        kernel(&folder.path().join("user"), "b", r#""/user""#);
        let found = specs(folder.path());
        assert_eq!(found.find("a").unwrap().argv[0], "/second");
        assert_eq!(found.find("b").unwrap().argv[0], "/user");
        let told = found.find("c").unwrap_err();
        assert_eq!(told.kind(), "not_found");
        assert!(told.to_string().contains("Installed: a, b"), "{told}");
    }

    #[test]
    fn a_venvs_kernel_is_run_by_the_venvs_python_and_python_is_whichever_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let venv = folder.path().join("venv");
        kernel(&venv.join("share/jupyter"), "python3", r#""python""#);
        std::fs::create_dir_all(venv.join("bin")).unwrap();
        std::fs::write(venv.join("bin/python"), "").unwrap();
        let before = specs(folder.path()).find("python").unwrap();
        assert_eq!((before.argv[0].as_str(), before.prefix), ("python", None));
        std::fs::write(venv.join("pyvenv.cfg"), "").unwrap();
        let found = specs(folder.path()).find("python").unwrap();
        assert_eq!(Path::new(&found.argv[0]), venv.join("bin/python"));
        assert_eq!(found.prefix, Some(venv));
    }

    #[test]
    fn where_there_is_none_it_is_said_how_to_get_one() {
        let none = Specs::of_environment(Path::new("/nowhere"));
        let told = none.find("python").unwrap_err().to_string();
        assert!(told.contains("pip install ipykernel"), "{told}");
    }

    #[test]
    fn a_file_that_is_no_kernel_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("first");
        kernel(&data, "good", r#""/x""#);
        for (name, text) in [
            ("broken", "{"),
            (
                "no-file",
                r#"{"argv": ["x"], "display_name": "K", "language": "l"}"#,
            ),
        ] {
            let bad = data.join("kernels").join(name);
            std::fs::create_dir_all(&bad).unwrap();
            std::fs::write(bad.join("kernel.json"), text).unwrap();
        }
        let names: Vec<String> = specs(folder.path())
            .list()
            .into_iter()
            .map(|s| s.name)
            .collect();
        assert_eq!(names, ["good"]);
    }
}
