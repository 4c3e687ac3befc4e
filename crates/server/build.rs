//! Puts the page that `cargo xtask ui` built into the server. Where none was built, the table is
//! empty and the plain page is served.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let built = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../ui/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", built.display());
    // A copy: the page may be built anew while the server is compiled.
    let kept = Path::new(&env::var("OUT_DIR")?).join("page");
    let index = built.join("index.html");
    let (page, assets) = if index.is_file() {
        copy(&built, &kept)?;
        let index = kept.join("index.html");
        (format!("Some(include_str!({index:?}))"), assets(&kept)?)
    } else {
        ("None".to_owned(), String::new())
    };
    let table = format!(
        "/// The page's own document, with places for what is known when it is asked for.\n\
         pub(crate) const PAGE: Option<&str> = {page};\n\
         const ASSETS: &[Asset] = &[\n{assets}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("assets.rs"), table)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// A line for each file that the page fetches. Their names have the digest of their content.
fn assets(built: &Path) -> Result<String, Box<dyn Error>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(built)? {
        files.push(entry?.path());
    }
    files.sort();
    let mut lines = String::new();
    for file in &files {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let kind = match extension {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("wasm") => "application/wasm",
            _ => continue,
        };
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or("a file of the page has a name that is not UTF-8")?;
        let packed = file.with_file_name(format!("{name}.gz"));
        let packed = if packed.is_file() {
            format!("Some(include_bytes!({packed:?}))")
        } else {
            "None".to_owned()
        };
        writeln!(
            lines,
            "    Asset {{ name: {name:?}, kind: {kind:?}, plain: include_bytes!({file:?}), packed: {packed} }},"
        )?;
    }
    Ok(lines)
}
