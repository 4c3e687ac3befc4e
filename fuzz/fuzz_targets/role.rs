//! Whatever is in a role or skill file, it is read or its mistakes are told, each with a line that
//! is there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use policy::{Mistake, SkillFile, Source};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    for text in [text.to_string(), format!("---\n{text}\n---\nbody")] {
        // In YAML, a carriage return alone ends a line too.
        let lines = text.split(['\n', '\r']).count();
        let told = |mistakes: &[Mistake]| {
            for mistake in mistakes {
                assert!((1..=lines).contains(&mistake.line), "{mistake}");
                assert!(!mistake.what.is_empty());
            }
        };
        let skills = match SkillFile::read(&text, "s/SKILL.md", "s", Source::Person) {
            Ok((skill, mistakes)) => {
                told(&mistakes);
                vec![skill]
            }
            Err(mistakes) => {
                assert!(!mistakes.is_empty());
                told(&mistakes);
                Vec::new()
            }
        };
        match policy::role::read(&text, "r.md", "r", Source::Person, &skills) {
            Ok((_, mistakes)) => told(&mistakes),
            Err(mistakes) => {
                assert!(!mistakes.is_empty());
                told(&mistakes);
            }
        }
    }
});
