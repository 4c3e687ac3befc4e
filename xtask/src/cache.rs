//! Where things are: the checkout, the build's target folder, and the cache outside the checkout
//! that survives a clean clone (WARD_CACHE, or `ward-build` in the user's cache folder).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The folders of one run.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The checkout.
    pub(crate) root: PathBuf,
    /// Where cargo builds to.
    pub(crate) target: PathBuf,
    /// Tools and builds that are worth keeping.
    pub(crate) cache: PathBuf,
}

impl Places {
    /// Finds them, and makes the cache folder.
    pub(crate) fn find() -> anyhow::Result<Self> {
        // Told by cargo when it runs this, not when it built it: two checkouts may share a cache.
        let xtask =
            std::env::var_os("CARGO_MANIFEST_DIR").context("start this as `cargo xtask`")?;
        let root = Path::new(&xtask)
            .parent()
            .context("xtask has no folder above it")?
            .to_owned();
        // This very program was built to <target>/debug/xtask: no setting of cargo's can be missed.
        let target = std::env::current_exe()?
            .parent()
            .and_then(Path::parent)
            .context("the target folder could not be found")?
            .to_owned();
        let cache = cache_folder()?;
        std::fs::create_dir_all(&cache).with_context(|| {
            format!(
                "the cache folder {} could not be made; WARD_CACHE names another",
                cache.display()
            )
        })?;
        Ok(Self {
            root,
            target,
            cache,
        })
    }

    /// A program that the workspace builds.
    pub(crate) fn built(&self, profile: &str, name: &str) -> PathBuf {
        // Cargo has another name for the folder of this one.
        let folder = if profile == "dev" { "debug" } else { profile };
        self.target.join(folder).join(name)
    }
}

fn cache_folder() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("WARD_CACHE").filter(|name| !name.is_empty()) {
        return std::path::absolute(&named).context("WARD_CACHE is not a path");
    }
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::home_dir().map(|home| home.join(".cache"));
    match xdg.filter(|path| path.is_absolute()).or(home) {
        Some(caches) => Ok(caches.join("ward-build")),
        None => {
            bail!("HOME is not set; set it, or name a folder for the build cache in WARD_CACHE")
        }
    }
}
