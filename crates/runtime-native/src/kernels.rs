//! The handler that runs cells on a Jupyter kernel: starts it when it is needed, and anew when it
//! died.

use std::rc::Rc;

use notebook::Failed;
use runtime_core::{ExecutionContext, Finished, SessionState};
use sandbox::RoomOptions;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::kernel::{Kernel, KernelError, Ran};
use crate::spec::KernelSpec;

/// Which kernel, and behind which wall.
#[derive(Debug, Clone)]
pub struct KernelOptions {
    /// Which.
    pub spec: KernelSpec,
    /// The room that it runs in.
    pub room: RoomOptions,
    /// Whether somebody can be asked for input.
    pub asks: bool,
}

/// A kernel for one agent. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Kernels(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    options: KernelOptions,
    kernel: Mutex<Option<Kernel>>,
}

impl Kernels {
    /// None runs yet.
    #[must_use]
    pub fn new(options: KernelOptions) -> Self {
        Self(Rc::new(Inner {
            options,
            kernel: Mutex::new(None),
        }))
    }

    /// Starts the kernel where none runs. What it says about its language is answered.
    pub async fn start(&self) -> Result<Value, KernelError> {
        let mut kernel = self.0.kernel.lock().await;
        Ok(self.alive(&mut kernel).await?.language().clone())
    }

    async fn alive<'a>(
        &self,
        kernel: &'a mut Option<Kernel>,
    ) -> Result<&'a mut Kernel, KernelError> {
        if kernel.as_ref().is_some_and(|kernel| !kernel.is_alive()) {
            *kernel = None;
        }
        let options = &self.0.options;
        match kernel {
            Some(kernel) => Ok(kernel),
            None => Ok(kernel.insert(Kernel::start(&options.spec, &options.room).await?)),
        }
    }

    /// Ends the kernel and starts it anew: all that it knew is gone.
    pub async fn restart(&self) -> Result<(), KernelError> {
        self.end().await;
        self.start().await.map(drop)
    }

    /// Ends the kernel, and waits until nothing of it is left.
    pub async fn end(&self) {
        if let Some(kernel) = self.0.kernel.lock().await.take() {
            kernel.end().await;
        }
    }

    /// Runs a cell: the handler of an agent.
    pub async fn execute(&self, context: ExecutionContext) -> Finished {
        let mut kernel = self.0.kernel.lock().await;
        let anew = kernel.as_ref().is_some_and(|kernel| !kernel.is_alive());
        if anew {
            context.status(SessionState::Restarting);
            context.stderr("The kernel is started anew; what it knew is gone.\n");
        }
        let started = tokio::select! {
            started = self.alive(&mut kernel) => started,
            () = context.cancelled() => return Finished::Cancelled,
        };
        if anew {
            context.status(SessionState::Busy);
        }
        let ran = match started {
            Ok(kernel) => kernel.execute(&context, self.0.options.asks).await,
            Err(error) => Err(error),
        };
        match ran {
            Ok(Ran::Finished(finished)) => finished,
            Ok(Ran::Died(_) | Ran::Killed) if context.is_cancelled() => {
                *kernel = None;
                context.stderr("The kernel did not stop, and was ended; what it knew is gone.\n");
                Finished::Cancelled
            }
            Ok(Ran::Died(why)) => {
                *kernel = None;
                lost(&KernelError::Died(format!(
                    "{why}. The next cell starts it anew."
                )))
            }
            Ok(Ran::Killed) => {
                *kernel = None;
                Finished::Cancelled
            }
            Err(error) => {
                *kernel = None;
                lost(&error)
            }
        }
    }
}

fn lost(error: &KernelError) -> Finished {
    Finished::Failed(Failed {
        kind: error.kind().to_owned(),
        message: error.to_string(),
    })
}
