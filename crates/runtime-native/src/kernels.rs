//! The handler that runs cells on a Jupyter kernel: starts it when it is needed, and anew when it
//! died.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use jupyter_zmq_client::DealerSendConnection;
use notebook::{Comm, Failed};
use protocol::sandbox::SetAside;
use runtime_core::{ExecutionContext, Finished, SessionState};
use sandbox::RoomOptions;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::comms::{self, Spoken};
use crate::kernel::{Kernel, KernelError, Ran};
use crate::sockets::send;
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

struct Inner {
    options: KernelOptions,
    kernel: Mutex<Option<Kernel>>,
    /// What kernels say over their comms.
    spoken: Spoken,
    /// Set aside when a kernel ended outside of any cell; the next one says it.
    untold: RefCell<Vec<SetAside>>,
    /// The way to the kernel that is there, also while a cell runs.
    shell: RefCell<Weak<Mutex<DealerSendConnection>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Kernels {
    /// None runs yet.
    #[must_use]
    pub fn new(options: KernelOptions) -> Self {
        Self(Rc::new(Inner {
            options,
            kernel: Mutex::new(None),
            spoken: Spoken::default(),
            untold: RefCell::default(),
            shell: RefCell::default(),
        }))
    }

    /// Which kernel.
    #[must_use]
    pub fn spec(&self) -> &KernelSpec {
        &self.0.options.spec
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
            None => {
                let new = Kernel::start(&options.spec, &options.room, &self.0.spoken).await?;
                *self.0.shell.borrow_mut() = Arc::downgrade(new.shell());
                Ok(kernel.insert(new))
            }
        }
    }

    /// What the kernel says over its comms.
    pub(crate) fn spoken(&self) -> &Spoken {
        &self.0.spoken
    }

    /// Tells the kernel something over a comm, also while a cell runs. Where no kernel is there, the
    /// comm is not either.
    pub(crate) async fn tell(&self, comm: &Comm) {
        let shell = self.0.shell.borrow().upgrade();
        let (Some(shell), Ok(message)) = (shell, comms::to_kernel(comm)) else {
            return;
        };
        let sent = send(&mut *shell.lock().await, message).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a message to a kernel's comm is lost");
        }
    }

    /// Ends the kernel and starts it anew: all that it knew is gone.
    pub async fn restart(&self) -> Result<(), KernelError> {
        let set_aside = self.take_away().await;
        self.0.untold.borrow_mut().extend(set_aside);
        self.start().await.map(drop)
    }

    /// Ends the kernel, and waits until nothing of it is left.
    pub async fn end(&self) {
        for taken in self.take_away().await {
            tracing::warn!("{}", told(&taken));
        }
    }

    async fn take_away(&self) -> Vec<SetAside> {
        match self.0.kernel.lock().await.take() {
            Some(kernel) => kernel.end().await,
            None => Vec::new(),
        }
    }

    /// Runs a cell: the handler of an agent.
    pub async fn execute(&self, context: ExecutionContext) -> Finished {
        let mut kernel = self.0.kernel.lock().await;
        tell(&context, &self.0.untold.take());
        let dead = kernel.as_ref().is_some_and(|kernel| !kernel.is_alive());
        let mut ran = self.run(&mut kernel, &context, dead).await;
        if let Ok(Ran::Unsent(_)) = ran {
            // It was on its way out, and the cell is for the next one.
            ran = self.run(&mut kernel, &context, true).await;
        }
        if !matches!(ran, Ok(Ran::Finished(_))) {
            let_go(&mut kernel, &context).await;
        }
        match ran {
            Ok(Ran::Finished(finished)) => finished,
            Ok(Ran::Died(_) | Ran::Killed) if context.is_cancelled() => {
                context.stderr("The kernel did not stop, and was ended; what it knew is gone.\n");
                Finished::Cancelled
            }
            Ok(Ran::Died(why)) => lost(&KernelError::Died(format!(
                "{why}. The next cell starts it anew."
            ))),
            Ok(Ran::Killed) => Finished::Cancelled,
            Ok(Ran::Unsent(error)) | Err(error) => lost(&error),
        }
    }

    /// Runs a cell on the kernel that is there, or on a new one.
    async fn run(
        &self,
        kernel: &mut Option<Kernel>,
        context: &ExecutionContext,
        anew: bool,
    ) -> Result<Ran, KernelError> {
        if anew {
            let_go(kernel, context).await;
            context.status(SessionState::Restarting);
            context.stderr("The kernel is started anew; what it knew is gone.\n");
        }
        let kernel = tokio::select! {
            kernel = self.alive(kernel) => kernel?,
            () = context.cancelled() => return Ok(Ran::Finished(Finished::Cancelled)),
        };
        if anew {
            context.status(SessionState::Busy);
        }
        let ran = kernel.execute(context, self.0.options.asks).await?;
        if let Ran::Finished(_) = &ran {
            // Before anybody hears that it is over: the next action finds nothing of it.
            tell(context, &kernel.sweep().await);
        }
        Ok(ran)
    }
}

/// Ends a kernel, and says what of its doing was set aside.
async fn let_go(kernel: &mut Option<Kernel>, context: &ExecutionContext) {
    if let Some(kernel) = kernel.take() {
        tell(context, &kernel.end().await);
    }
}

fn tell(context: &ExecutionContext, set_aside: &[SetAside]) {
    for taken in set_aside {
        context.stderr(&format!("{}\n", told(taken)));
    }
}

/// What was set aside, as it is told wherever a command did it.
fn told(taken: &SetAside) -> String {
    let SetAside { id, path, reason } = taken;
    // A cell chose the names: they stay on their line.
    let plain = |text: &str| text.replace(char::is_control, "?");
    let (path, reason) = (plain(path), plain(reason));
    format!("set aside: {path} ({reason}); `ward aside restore {id}` puts it back")
}

fn lost(error: &KernelError) -> Finished {
    Finished::Failed(Failed {
        kind: error.kind().to_owned(),
        message: error.to_string(),
    })
}
