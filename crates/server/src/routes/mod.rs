//! What is done at each address; `operations` says which is where and who may.

pub(crate) mod actions;
pub(crate) mod approvals;
pub(crate) mod door;
pub(crate) mod events;
pub(crate) mod frame;
pub(crate) mod grants;
pub(crate) mod health;
pub(crate) mod inbox;
pub(crate) mod ledger;
pub(crate) mod login;
pub(crate) mod notebooks;
pub(crate) mod page;
pub(crate) mod roles;
pub(crate) mod runtimes;
pub(crate) mod sessions;
pub(crate) mod undo;

use protocol::{ErrorKind, Failure};

use crate::failure::HttpFailure;

/// Does something to its end, also if whoever asked for it hangs up meanwhile: half of it must not
/// be left.
pub(crate) async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "a request was not worked on to its end");
            Err(Failure::new(
                ErrorKind::Internal,
                "Ward could not finish this. Its log says more.",
            ))
        }
    }
}

/// Does what waits for the disk, beside those who answer.
pub(crate) async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, HttpFailure>
where
    T: Send + 'static,
    E: Send + 'static,
    HttpFailure: From<E>,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(HttpFailure::new(ErrorKind::Internal, error.to_string())),
    }
}
