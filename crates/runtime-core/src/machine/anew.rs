//! What happens when somebody wants the runtime to begin anew.

use notebook::{Notebook, SessionState};

use super::{Effect, Machine, Step};

impl Machine {
    /// How often it was to begin anew, where that is more often than it did.
    pub(super) fn wanted_anew(&mut self, notebook: &Notebook) -> Option<u64> {
        let session = self.session.as_ref().and_then(|id| notebook.session(id))?;
        let wanted = session.restarts;
        let done = *self.restarts.get_or_insert(wanted);
        (wanted > done && !self.restarting).then_some(wanted)
    }

    /// What runs is stopped: whoever wants it anew wants that too.
    pub(super) fn stop_for_restart(&mut self, effects: &mut Vec<Effect>) {
        let Some(current) = &mut self.current else {
            return;
        };
        let told = std::mem::replace(&mut current.cancelled, true);
        if current.step == Step::Running && !told && !current.void {
            effects.push(Effect::Cancel(current.job.execution_id.clone()));
        }
    }

    pub(super) fn restart(&mut self, wanted: u64, effects: &mut Vec<Effect>) {
        self.restarts = Some(wanted);
        self.restarting = true;
        self.tell(SessionState::Restarting, effects);
        effects.push(Effect::Restart);
    }

    pub(super) fn restarted(&mut self, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.restarting) {
            self.tell(SessionState::Ready, effects);
        }
    }
}
