//! A look at what a file action would touch, in another process than the runtime server: the gate
//! saves the way there and back. The runtime server looks again before it does anything, with the
//! same code, and what it finds is what counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{Facts, Failure};
use serde_json::Value;

use crate::context::Context;
use crate::grounds::Beyond;
use crate::registry;
use crate::workspace::Workspace;

/// Looks, and can do nothing else.
#[derive(Debug)]
pub struct Looker(Arc<Context>);

impl Looker {
    /// Of this workspace; `own` are Ward's own folders, as the runtime server knows them.
    pub fn open(workspace: &Path, own: &[PathBuf]) -> Result<Self, Failure> {
        let workspace = Arc::new(Workspace::open(workspace)?);
        let beyond = Arc::new(Beyond::open(own)?);
        Ok(Self(Arc::new(Context::to_look_at(workspace, beyond))))
    }

    /// What an action would touch. None for what the files alone do not tell.
    pub async fn look(&self, action: &str, params: &Value) -> Option<Result<Facts, Failure>> {
        if !action.starts_with("fs.") {
            return None;
        }
        Some(match registry::prepare(action, params.clone()) {
            Ok(prepared) => prepared.resolve(Arc::clone(&self.0)).await,
            Err(failure) => Err(failure),
        })
    }
}
