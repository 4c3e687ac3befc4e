//! Secrets: how they are made, and what is kept of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::Digest;

use super::file::TokensError;

/// No secret of Ward's is longer; what is, is not looked at.
const MAX_LENGTH: usize = 512;

/// What a secret is for. It begins with it, so that people, and tools that look for leaked
/// secrets, see what they have found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Person,
    Agent,
    Runtime,
    Session,
    Login,
}

/// A new secret with 256 random bits.
pub(super) fn new(purpose: Purpose) -> Result<String, TokensError> {
    let mut bytes = [0; 32];
    random(&mut bytes)?;
    let prefix = match purpose {
        Purpose::Person => "ward_person_",
        Purpose::Agent => "ward_agent_",
        Purpose::Runtime => "ward_runtime_",
        // These two are never shown to be copied.
        Purpose::Session | Purpose::Login => "",
    };
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// A new id. It is no secret.
pub(super) fn new_id() -> Result<String, TokensError> {
    let mut bytes = [0; 6];
    random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What is kept of a secret, and what it is found by: who compares learns nothing from the time
/// that takes, since nobody can choose a secret by its hash.
pub(super) fn hash(secret: &str) -> Option<Digest> {
    (secret.len() <= MAX_LENGTH).then(|| Digest::of(secret.as_bytes()))
}

fn random(bytes: &mut [u8]) -> Result<(), TokensError> {
    getrandom::fill(bytes).map_err(|error| TokensError::NoRandomness(error.to_string()))
}
