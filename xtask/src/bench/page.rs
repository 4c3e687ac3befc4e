//! `cargo xtask bench page`: how large the page is, when it is painted and can be used, and whether
//! an answer of 4,000 deltas streams in without a frame that is late. It has no peer: the figures
//! are printed, not written.

use super::{Args, Subject, build};
use crate::cache::Places;
use crate::steps::Steps;
use crate::ui::{self, Page};
use crate::{needs, run};

pub(super) fn measure(args: &Args, places: &Places, steps: &mut Steps) -> anyhow::Result<()> {
    let profile = &args.profile;
    let ward = places.built(profile, "ward");
    steps.step("Build", || {
        build(places, Subject::Page, profile)?;
        if ui::build(places, &ward)? == Page::Built {
            build(places, Subject::Page, profile)?;
        }
        Ok(())
    })?;
    let folder = places.root.join("tests/browser");
    steps.step("The browser", || {
        needs::chromium()?;
        ui::npm_install(&folder)
    })?;
    steps.step("Measuring", || {
        let mut command = run::program("node", &folder);
        command.arg("bench/page.mjs").env("WARD_BIN", &ward);
        if args.quick {
            command.arg("--quick");
        }
        run::run(
            &mut command,
            "`node --test` in tests/browser says whether the page works at all.",
        )
    })
}
