//! The derivation of a decision as text. As JSON it is the [`Decision`] itself.

use std::fmt::Write as _;

use crate::decision::Decision;

impl Decision {
    /// The whole derivation, for people: the answer, then each thing touched and what had a say.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}  role {}, mode {}",
            self.verdict, self.role, self.mode
        );
        let _ = writeln!(text, "  because of {}", shown(&self.because.to_string()));
        for step in &self.steps {
            let _ = writeln!(text, "\n  {:<5}  {}", step.verdict, shown(&step.touch));
            let _ = writeln!(text, "         {}", shown(&step.because.to_string()));
            for considered in &step.considered {
                let _ = writeln!(text, "         also {}", shown(&considered.to_string()));
            }
            if let Some(offer) = &step.offer {
                let _ = writeln!(
                    text,
                    "         a grant of `{}` would allow it",
                    shown(offer)
                );
            }
        }
        text
    }
}

/// What came from an agent, made fit for a terminal: nothing in it can move the cursor, forge a
/// line or turn the text around.
fn shown(text: &str) -> String {
    let mut fit = String::with_capacity(text.len());
    for char in text.chars() {
        let turns = matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if char.is_control() || turns {
            fit.extend(char.escape_default());
        } else {
            fit.push(char);
        }
    }
    fit
}
