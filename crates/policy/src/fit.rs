//! Whether a pattern fits one of the things that an action would touch.

use protocol::ActionName;
use protocol::facts::Access;

use crate::command::{About, Command, Folder, Part, Word, base_name, is_plain_program};
use crate::exact::Exact;
use crate::glob::{NameGlob, PathGlob};
use crate::pattern::{Argument, Fit, Name, Pattern, Rest, Stance};
use crate::place::{Base, Below, Spot};
use crate::touch::{By, Reach, Touch};

impl Pattern {
    /// Whether it fits this thing; `exact` is the command that the thing is part of.
    pub(crate) fn fits(&self, touch: &Touch, stance: Stance, exact: &Exact<'_>) -> Fit {
        if let Argument::Exact(digest) = &self.argument {
            return when(Exact::is_about(touch) && exact.is(digest));
        }
        if !self.names(touch) {
            return Fit::No;
        }
        match (&self.argument, touch) {
            (Argument::Any, Touch::Command(command)) if command.part == Part::Surrounds => {
                // `deny terminal.run` is met by the commands that act, and by the use of the action.
                Fit::No
            }
            (Argument::Any, Touch::Unknown(doubt)) => match (doubt.about, stance) {
                (About::Behaviour, Stance::Restrict) => Fit::No,
                (About::Behaviour | About::Commands, _) => Fit::Yes,
            },
            (Argument::Any, _) => Fit::Yes,
            (Argument::Path(base, glob), Touch::Path { path, reach, .. }) => match path {
                Some(path) => fits_path(*base, glob, path, *reach, stance),
                None => Fit::Maybe,
            },
            (Argument::Command(words, rest), Touch::Command(command)) => {
                fits_command(words, *rest, command, stance)
            }
            (Argument::Command(..), Touch::Unknown(doubt)) => match (doubt.about, stance) {
                (About::Behaviour, Stance::Restrict) => Fit::No,
                (About::Behaviour | About::Commands, _) => Fit::Maybe,
            },
            (Argument::Command(..), Touch::Typed) => Fit::Maybe,
            // Whoever may run some command may look after it.
            (Argument::Command(..), Touch::Use(_)) => match stance {
                Stance::Permit => Fit::Yes,
                Stance::Restrict => Fit::No,
            },
            (Argument::Host(pattern), Touch::Host { host, .. }) => {
                match host.as_ref().and_then(|host| pattern.fits(host)) {
                    Some(true) => Fit::Yes,
                    Some(false) => Fit::No,
                    None => Fit::Maybe,
                }
            }
            (
                Argument::Path(..) | Argument::Command(..) | Argument::Host(_) | Argument::Exact(_),
                _,
            ) => Fit::No,
        }
    }

    /// Whether it names this path itself, and not merely one of many.
    pub(crate) fn names_exactly(&self, spot: &Spot) -> bool {
        match &self.argument {
            Argument::Path(base, glob) => match spot.below(*base) {
                Below::Names(names) => glob.is_exactly(names),
                Below::Above | Below::Elsewhere | Below::Unknown => false,
            },
            Argument::Any | Argument::Command(..) | Argument::Exact(_) | Argument::Host(_) => false,
        }
    }

    /// Whether it stands for one command alone.
    pub(crate) fn is_one_command(&self) -> bool {
        matches!(self.argument, Argument::Exact(_))
    }

    /// Whether its name stands for this kind of thing.
    pub(crate) fn names(&self, touch: &Touch) -> bool {
        let action = match self.name {
            Name::Everything => return true,
            Name::Files => return matches!(touch, Touch::Path { .. }),
            Name::Terminals => return is_about_terminals(touch),
            Name::Editors => {
                return match touch {
                    Touch::Use(used) => used.is_editors(),
                    Touch::Path {
                        by: By::Action(action),
                        ..
                    } => action.is_editors(),
                    _ => false,
                };
            }
            Name::Cells => return matches!(touch, Touch::Use(used) if used.is_cells()),
            Name::Net => return matches!(touch, Touch::Host { .. }),
            Name::Action(action) => action,
        };
        match touch {
            Touch::Path { access, by, .. } => {
                *by == By::Action(action)
                    || action
                        == match access {
                            Access::Read => ActionName::FsRead,
                            Access::Write => ActionName::FsWrite,
                            Access::Delete => ActionName::FsDelete,
                        }
            }
            Touch::Command(_) | Touch::Unknown(_) => action == ActionName::TerminalRun,
            Touch::Typed => matches!(action, ActionName::TerminalRun | ActionName::TerminalWrite),
            Touch::Use(used) => {
                action == *used || (action == ActionName::TerminalRun && is_upkeep(*used))
            }
            Touch::Host { .. } => false,
        }
    }
}

fn is_about_terminals(touch: &Touch) -> bool {
    match touch {
        Touch::Path { .. } | Touch::Host { .. } => false,
        Touch::Use(action) => !action.is_editors() && !action.is_cells(),
        Touch::Command(_) | Touch::Unknown(_) | Touch::Typed => true,
    }
}

/// Actions on what one's own commands are doing.
fn is_upkeep(action: ActionName) -> bool {
    match action {
        ActionName::TerminalResize
        | ActionName::TerminalClose
        | ActionName::TerminalList
        | ActionName::TerminalRead
        | ActionName::TerminalStop => true,
        ActionName::FsRead
        | ActionName::FsList
        | ActionName::FsStat
        | ActionName::FsGlob
        | ActionName::FsSearch
        | ActionName::FsWrite
        | ActionName::FsEdit
        | ActionName::FsPatch
        | ActionName::FsMkdir
        | ActionName::FsMove
        | ActionName::FsDelete
        | ActionName::TerminalRun
        | ActionName::TerminalOpen
        | ActionName::TerminalWrite
        | ActionName::EditorOpen
        | ActionName::EditorSelection
        | ActionName::EditorDiagnostics
        | ActionName::EditorDiff
        | ActionName::EditorSymbols
        | ActionName::EditorFormat
        | ActionName::EditorRename
        | ActionName::EditorCommand
        | ActionName::EditorTask
        | ActionName::CellExecute => false,
    }
}

fn fits_path(base: Base, glob: &PathGlob, spot: &Spot, reach: Reach, stance: Stance) -> Fit {
    let inner = match (spot.below(base), stance, reach) {
        (Below::Names(names), _, _) => names,
        (Below::Unknown, _, _) => return Fit::Maybe,
        // A whole tree that holds the pattern's folder holds what the pattern names.
        (Below::Above, Stance::Restrict, Reach::Tree) => return Fit::Maybe,
        (Below::Above | Below::Elsewhere, _, _) => return Fit::No,
    };
    match (stance, reach) {
        (Stance::Permit, Reach::Itself) => when(glob.fits(inner)),
        // A tree is permitted only by a pattern that fits whatever is in it.
        (Stance::Permit, Reach::Tree) => {
            let anything = ["\u{0}"; 2].into_iter();
            let deep: Vec<&str> = inner.iter().map(String::as_str).chain(anything).collect();
            when(glob.fits(inner) && glob.fits(&deep))
        }
        (Stance::Restrict, _) if glob.fits_or_holds(inner) => Fit::Yes,
        (Stance::Restrict, Reach::Tree) if glob.reaches_below(inner) => Fit::Maybe,
        (Stance::Restrict, Reach::Itself | Reach::Tree) => Fit::No,
    }
}

fn when(fits: bool) -> Fit {
    if fits { Fit::Yes } else { Fit::No }
}

fn fits_command(pattern: &[NameGlob], rest: Rest, command: &Command, stance: Stance) -> Fit {
    // Most rules are about another program; nothing else need be looked at then.
    if let (Some(glob), Some(Word::Known(program))) = (pattern.first(), command.words.first())
        && fits_program(glob, program, stance) == Fit::No
    {
        return Fit::No;
    }
    let fit = in_order(pattern, rest, command.words.iter(), stance);
    if stance == Stance::Permit {
        // From another folder its words name another file.
        let names_file =
            pattern.len() > 1 || pattern.first().is_some_and(NameGlob::is_relative_path);
        let elsewhere = command.folder == Folder::Other && command.is_by_folder();
        return if names_file && elsewhere {
            fit.min(Fit::Maybe)
        } else {
            fit
        };
    }
    if fit == Fit::Yes {
        return fit;
    }
    match fits_without_options(pattern, rest, &command.words) {
        true => Fit::Maybe,
        false => fit,
    }
}

/// Whether a word may be an option of the program. `cargo +nightly` has one that looks otherwise,
/// and only right behind its name.
fn may_be_option(index: usize, word: &Word) -> bool {
    match word {
        Word::Known(text) => text.starts_with('-') || (index == 1 && text.starts_with('+')),
        Word::One(_) => true,
        // Looked at where it stands: it may be any words.
        Word::Some(_) => false,
    }
}

/// `git -C x push` may be `git push`: whether the words are those of the pattern without some
/// options, and without what follows each of these, which may be its value.
fn fits_without_options(pattern: &[NameGlob], rest: Rest, words: &[Word]) -> bool {
    let options = |(index, word)| may_be_option(index, word);
    if pattern.len() < 2 || !words.iter().enumerate().skip(1).any(options) {
        return false;
    }
    // How many words of the pattern may have been met, and whether an option stood last.
    let mut met = vec![[false; 2]; pattern.len() + 1];
    met[1][0] = true;
    for (index, word) in words.iter().enumerate().skip(1) {
        let mut next = vec![[false; 2]; pattern.len() + 1];
        for (count, glob) in pattern.iter().enumerate().skip(1) {
            let [plain, behind_option] = met[count];
            if !plain && !behind_option {
                continue;
            }
            next[count + 1][0] |= match word {
                Word::Known(text) => glob.fits(text),
                Word::One(_) => true,
                Word::Some(_) => return true,
            };
            next[count][1] |= may_be_option(index, word);
            next[count][0] |= behind_option;
        }
        if met[pattern.len()][0] {
            // What follows the whole pattern.
            next[pattern.len()][0] |= rest == Rest::Anything || matches!(word, Word::Some(_));
        }
        met = next;
    }
    met[pattern.len()][0]
}

/// Whether the words of a command are those of the pattern, one by one.
fn in_order<'w>(
    pattern: &[NameGlob],
    rest: Rest,
    mut words: impl Iterator<Item = &'w Word>,
    stance: Stance,
) -> Fit {
    let mut sure = Fit::Yes;
    for (index, glob) in pattern.iter().enumerate() {
        match words.next() {
            Some(Word::Known(word)) if index == 0 => match fits_program(glob, word, stance) {
                Fit::No => return Fit::No,
                fit => sure = sure.min(fit),
            },
            Some(Word::Known(word)) if glob.fits(word) => {}
            Some(Word::Known(_)) | None => return Fit::No,
            Some(Word::One(_)) => sure = Fit::Maybe,
            Some(Word::Some(_)) => return Fit::Maybe,
        }
    }
    match (rest, words.next()) {
        (Rest::Anything, _) | (Rest::Nothing, None) => sure,
        (Rest::Nothing, Some(Word::Some(_))) => Fit::Maybe,
        (Rest::Nothing, Some(Word::Known(_) | Word::One(_))) => Fit::No,
    }
}

/// A path in front does not hide a name from a rule that restricts; for one that permits, only the
/// system's own folders hold the program of that name.
fn fits_program(glob: &NameGlob, word: &str, stance: Stance) -> Fit {
    if glob.fits(word) {
        return Fit::Yes;
    }
    let name = base_name(word);
    match stance {
        Stance::Restrict => when(match glob {
            NameGlob::Literal(literal) => base_name(literal) == name,
            NameGlob::Wild(_) => glob.fits(name),
        }),
        Stance::Permit if !glob.fits(name) => Fit::No,
        Stance::Permit if is_plain_program(word) => Fit::Yes,
        Stance::Permit => Fit::Maybe,
    }
}
