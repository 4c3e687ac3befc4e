//! What people say to agents: looked at before anything begins, and made into messages.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gate::Actor;
use protocol::session::{Input, Limits, Origin, Received, SessionEvent};
use protocol::{ErrorKind, Failure};

use crate::provider::{Message, Part};

/// The longest message, its pictures aside.
const MAX_TEXT: usize = 1024 * 1024;

/// Who says what this actor says.
pub(crate) fn origin_of(actor: &Actor) -> Origin {
    match actor {
        Actor::Person(_) => Origin::User,
        Actor::Agent(agent) => Origin::Client(agent.id.clone()),
    }
}

pub(crate) fn received(id: &str, message: &Message) -> SessionEvent {
    let images = message.content.iter();
    SessionEvent::Received(Received {
        message_id: id.to_owned(),
        origin: message.origin.clone(),
        text: message.text(),
        images: images.filter(|part| matches!(part, Part::Image(_))).count(),
    })
}

pub(crate) fn is_empty(input: &Input) -> bool {
    match input {
        Input::Text(text) => text.trim().is_empty(),
        Input::Parts(parts) => parts.text.trim().is_empty() && parts.images.is_empty(),
    }
}

/// What is said, as a message, and what a session that begins so is called.
pub(crate) fn message(input: &Input, origin: Origin) -> Result<(Message, String), Failure> {
    if is_empty(input) {
        return Err(nothing_said());
    }
    let (text, images) = match input {
        Input::Text(text) => (text, &[][..]),
        Input::Parts(parts) => (&parts.text, &parts.images[..]),
    };
    if text.len() > MAX_TEXT {
        return Err(Failure::new(
            ErrorKind::TooLarge,
            format!(
                "A message has at most {} KiB. Put the rest into a file.",
                MAX_TEXT / 1024
            ),
        )
        .with("field", "input"));
    }
    for image in images {
        let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        if !known.contains(&image.media_type.as_str()) {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!("A picture is one of {}.", known.join(", ")),
            )
            .with("field", "input.images"));
        }
        if image.base64.is_empty() || BASE64_STANDARD.decode(&image.base64).is_err() {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                "The bytes of a picture are base64, in one piece and padded.",
            )
            .with("field", "input.images"));
        }
    }
    let mut message = Message::user(text.clone());
    message.origin = origin;
    message
        .content
        .extend(images.iter().cloned().map(Part::Image));
    let title = match text.trim() {
        "" => "A picture".to_owned(),
        text => title_of(text),
    };
    Ok((message, title))
}

pub(crate) fn nothing_said() -> Failure {
    Failure::new(
        ErrorKind::InvalidParams,
        "`input` says nothing. Say what the agent shall do.",
    )
    .with("field", "input")
}

/// Limits that somebody can mean.
pub(crate) fn checked_limits(limits: &Limits) -> Result<(), Failure> {
    match limits.cost {
        Some(cost) if cost.is_nan() || cost < 0.0 => Err(Failure::new(
            ErrorKind::InvalidParams,
            format!("`limits.cost` is {cost}. It is a number of dollars, 0 or more."),
        )
        .with("field", "limits.cost")),
        Some(_) | None => Ok(()),
    }
}

/// The first line, in a length that fits a list.
pub(crate) fn title_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let mut title: String = line.chars().take(80).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

pub(crate) fn no_session(id: &str) -> Failure {
    let shown: String = id.chars().take(100).collect();
    Failure::new(
        ErrorKind::Unknown,
        format!("There is no session `{shown}` that is yours."),
    )
}

/// Ids are parts of the names of streams and actions.
pub(crate) fn checked(id: &str) -> Result<&str, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !id.is_empty() && id.len() <= 50 && id.bytes().all(good) {
        return Ok(id);
    }
    Err(Failure::new(
        ErrorKind::InvalidParams,
        "`id` has 1 to 50 letters, digits, `_` or `-`.",
    )
    .with("field", "id"))
}
