//! Ids as people see and write them. An id begins with the time it was made at, so that those of
//! one minute begin alike; people are shown what comes after, which is chance.

use crate::console::printable;

/// How long an id is that Ward made.
const WHOLE: usize = 28;
/// How much of it is its time.
const TIME: usize = 12;
/// How much of the rest is shown: enough to find it again.
const SHOWN: usize = 8;

/// An id as it is shown.
pub(crate) fn short(id: &str) -> String {
    printable(&chance(id).chars().take(SHOWN).collect::<String>())
}

/// Whether an id is what somebody wrote: all of it, its beginning, or the beginning of what is
/// shown.
pub(crate) fn is_meant(id: &str, written: &str) -> bool {
    !written.is_empty() && (id.starts_with(written) || chance(id).starts_with(written))
}

/// Whether this is a whole id that Ward made.
pub(crate) fn is_whole(text: &str) -> bool {
    text.len() == WHOLE && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What follows the time. Of an id that somebody else chose, all of it.
fn chance(id: &str) -> &str {
    match id.get(TIME..) {
        Some(rest) if is_whole(id) => rest,
        Some(_) | None => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_moment_are_told_apart_by_what_is_shown() {
        let [one, other] = [gate::new_id().unwrap(), gate::new_id().unwrap()];
        assert!(is_whole(&one) && !is_whole(&one[1..]) && !is_whole("vscode"));
        assert_ne!(short(&one), short(&other));
        assert!(is_meant(&one, &short(&one)) && is_meant(&one, &one));
        assert!(!is_meant(&other, &short(&one)));
        assert!(is_meant(&one, &one[..6]) && is_meant(&other, &one[..6]));
    }

    #[test]
    fn what_is_no_such_id_is_shown_from_its_beginning_and_nothing_means_nothing() {
        assert_eq!(short("job-7"), "job-7");
        assert!(is_meant("job-7", "job"));
        assert!(!is_meant("job-7", ""));
        assert_eq!(short("ähnlich wie ein Name"), "ähnlich ");
    }
}
