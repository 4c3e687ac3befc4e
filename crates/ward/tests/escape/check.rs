//! One check: an attack, what of Ward covers it, and what each tier makes of it.

use crate::scene::{Held, Scene, User, is_root, skip, tools};

/// What the host saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing of the attack.
    Nothing,
    /// The attack's work.
    Escape,
}

impl Seen {
    /// An escape, where this is so on the host.
    pub(crate) fn escape_if(so: bool) -> Self {
        if so { Self::Escape } else { Self::Nothing }
    }
}

/// Whose attack it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Root's as well as anyone's.
    Anyone,
    /// Only root could get that far.
    Root,
    /// Only somebody without rights has anything to gain.
    Unprivileged,
}

/// What the tier `walls` makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walls {
    /// It holds.
    Hold,
    /// It does not; docs/sandbox.md says so in these words.
    DoNotHold(&'static str),
    /// It may or may not, or there is nothing to hold; why.
    Unsaid(&'static str),
}

/// How the check is shown not to pass for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Without these layers together the attack gets through.
    Without(&'static str),
    /// The same, where the machine would let it happen without any sandbox; else nothing is shown.
    WithoutWhereAllowed(&'static str),
    /// It cannot be shown; why.
    None(&'static str),
}

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) by: By,
    pub(crate) proof: Proof,
    pub(crate) walls: Walls,
    /// Sets the scene, lets the attack run, and looks at the host.
    pub(crate) attempt: fn(&Scene) -> Seen,
}

impl Check {
    /// The room holds it for this user.
    pub(crate) fn holds_for(&self, user: User) {
        if let Some(why) = self.not_for(user) {
            return skip(why);
        }
        assert_eq!(self.seen(user, Held::Room), Seen::Nothing, "{}", self.name);
    }

    /// The attack would get through without the layers that cover it.
    pub(crate) fn is_no_accident(&self) {
        let (layers, always) = match self.proof {
            Proof::Without(layers) => (layers, true),
            Proof::WithoutWhereAllowed(layers) => (layers, false),
            Proof::None(why) => return skip(why),
        };
        let user = self.attacker();
        if let Some(why) = self.not_for(user) {
            return skip(why);
        }
        let seen = self.seen(user, Held::Without(layers));
        if seen == Seen::Nothing && !always && self.seen(user, Held::Nothing) == Seen::Nothing {
            return skip("this machine does not let it happen, with Ward or without");
        }
        assert_eq!(seen, Seen::Escape, "{} without {layers}", self.name);
    }

    /// The tier `walls` holds it, or is known not to.
    pub(crate) fn in_walls(&self) {
        // Who has no rights is who meets walls: in a container, or where namespaces are root's.
        let user = match User::Unprivileged.missing() {
            None if self.by != By::Root => User::Unprivileged,
            _ => User::Current,
        };
        if let Some(why) = self.not_for(user).or_else(|| tools::missing("unshare")) {
            return skip(why);
        }
        let expected = match self.walls {
            Walls::Hold => Seen::Nothing,
            Walls::DoNotHold(_) => Seen::Escape,
            Walls::Unsaid(why) => return skip(why),
        };
        assert_eq!(
            self.seen(user, Held::Walls),
            expected,
            "{} in walls",
            self.name
        );
    }

    fn seen(&self, user: User, held: Held) -> Seen {
        (self.attempt)(&Scene::new(user, held))
    }

    fn attacker(&self) -> User {
        match self.by {
            By::Unprivileged if is_root() => User::Unprivileged,
            By::Anyone | By::Root | By::Unprivileged => User::Current,
        }
    }

    fn not_for(&self, user: User) -> Option<String> {
        if let Some(why) = user.missing() {
            return Some(why);
        }
        let as_root = user == User::Current && is_root();
        match self.by {
            By::Root if !as_root => Some("only root could get that far".into()),
            By::Unprivileged if as_root => Some("root has nothing to gain by it".into()),
            By::Anyone | By::Root | By::Unprivileged => None,
        }
    }
}

/// The table: each check becomes four tests.
macro_rules! checks {
    ($($name:ident: $by:expr, $proof:expr, $walls:expr, $attempt:expr;)+) => {
        pub(crate) const CHECKS: &[&$crate::check::Check] = &[$(&$name::CHECK),+];
        $(
            mod $name {
                #[allow(unused_imports, reason = "not every table uses every word")]
                use super::*;
                use $crate::check::{By::*, Check, Proof::*, Walls::*};
                use $crate::scene::User;

                pub(crate) const CHECK: Check = Check {
                    name: stringify!($name),
                    by: $by,
                    proof: $proof,
                    walls: $walls,
                    attempt: $attempt,
                };

                #[test]
                fn is_held_for_this_user() {
                    CHECK.holds_for(User::Current);
                }

                #[test]
                fn is_held_for_an_unprivileged_user() {
                    CHECK.holds_for(User::Unprivileged);
                }

                #[test]
                fn is_no_accident() {
                    CHECK.is_no_accident();
                }

                #[test]
                fn in_walls() {
                    CHECK.in_walls();
                }
            }
        )+
    };
}
