//! What cells show.

use runtime_native::{Finished, Said};

use crate::support::{Bench, context};

crate::trials!(
    text_rich_output_and_errors_come_as_the_kernel_shows_them,
    no_number_that_is_shown_loses_digits,
    of_what_is_shown_the_valid_parts_are_kept_and_the_others_named,
    a_figure_is_a_png_and_a_data_frame_is_a_table,
    a_cell_that_asks_is_answered,
    where_nobody_can_be_asked_input_fails_at_once,
    a_flood_of_displays_comes_to_its_end_and_the_next_cell_runs,
    what_is_too_large_takes_no_room_here_and_is_told,
    an_end_that_is_too_large_is_an_end,
    text_that_is_not_unicode_is_shown_and_the_next_cell_runs,
    what_cannot_be_read_is_told_and_the_next_cell_runs,
);

async fn text_rich_output_and_errors_come_as_the_kernel_shows_them() {
    let bench = Bench::new();
    let ran = bench
        .run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n1+1")
        .await;
    assert_eq!(ran.finished, Finished::Ok);
    assert_eq!(ran.printed(), "out\n");
    assert_eq!(ran.shown("text/plain").unwrap(), "2");
    assert!(ran.said.contains(&Said::Count(1)), "{ran:?}");
    let stderr = |said: &Said| matches!(said, Said::Terminal { stream: runtime_native::StreamKind::Stderr, text } if text == "err\n");
    assert!(ran.said.iter().any(stderr), "{ran:?}");

    let ran = bench.run("from IPython.display import HTML, display, clear_output\ndisplay(HTML('<b>bold</b>'))\nclear_output(wait=True)").await;
    assert_eq!(ran.shown("text/html").unwrap(), "<b>bold</b>");
    assert!(ran.said.contains(&Said::Clear { wait: true }));

    // One that cannot be an id of Ward's has another, the same each time.
    let other = "51afab8e4053821e630cd3eeb012ec5c838357e1259a42d6f5802186f1d73699";
    for (written, known) in [("one", "one"), ("my plot", other)] {
        let line = format!("h = display('first', display_id='{written}')\nh.update('second')");
        let ran = bench.run(&line).await;
        let shown = |said: &Said| matches!(said, Said::Display { id: Some(id), .. } if id.as_str() == known);
        let updated = |said: &Said| matches!(said, Said::Update { id, .. } if id.as_str() == known);
        assert!(
            ran.said.iter().any(shown) && ran.said.iter().any(updated),
            "{ran:?}"
        );
    }

    let ran = bench.run("def f():\n    return 1/0\nf()").await;
    let Finished::Failed(failed) = &ran.finished else {
        panic!("{ran:?}");
    };
    assert_eq!(failed.kind, "error");
    assert_eq!(failed.message, "ZeroDivisionError: division by zero");
    let traceback = ran.said.iter().find_map(|said| match said {
        Said::Error { traceback, .. } => Some(traceback.join("\n")),
        _ => None,
    });
    assert!(plain(&traceback.unwrap()).contains("return 1/0"), "{ran:?}");

    // What it knew it knows, and each run has its number.
    let ran = bench.run("h is not None").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "True");
    assert!(ran.said.contains(&Said::Count(6)), "{ran:?}");
}

async fn no_number_that_is_shown_loses_digits() {
    let bench = Bench::new();
    let ran = bench
        .run("display({'application/json': {'n': 123456789012345678901234567890}}, raw=True)")
        .await;
    let shown = ran.shown("application/json").unwrap();
    assert_eq!(
        notebook::ipynb::value_to_text(&shown),
        r#"{"n":123456789012345678901234567890}"#
    );
}

async fn of_what_is_shown_the_valid_parts_are_kept_and_the_others_named() {
    let bench = Bench::new();
    let ran = bench
        .run("deep = 1\nfor _ in range(200):\n    deep = [deep]\ndisplay({'text/html': ['<b>', 'a</b>'], 'text/markdown': ['a', 1], 'image/png': 'no!', 'application/json': deep, 'text/plain': 'a'}, raw=True)")
        .await;
    assert_eq!(ran.shown("text/plain").unwrap(), "a", "{ran:?}");
    assert_eq!(ran.shown("text/html").unwrap(), "<b>a</b>");
    assert_eq!(
        ran.told(),
        "What is shown, or said about it, holds JSON that is nested more than 64 levels deep. Show it as text. It is left out.\n\
         What is shown as image/png must be base64 text. It is left out.\n\
         What is shown as text/markdown must be text. It is left out.\n"
    );
}

async fn a_figure_is_a_png_and_a_data_frame_is_a_table() {
    let bench = Bench::new();
    let ran = bench
        .run("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()")
        .await;
    let png = ran.shown("image/png").unwrap_or_else(|| panic!("{ran:?}"));
    assert!(png.as_str().unwrap().starts_with("iVBORw0KGgo"));
    let ran = bench
        .run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
        .await;
    let table = ran.shown("text/html").unwrap_or_else(|| panic!("{ran:?}"));
    assert!(table.as_str().unwrap().contains("<table"));
    assert!(
        ran.shown("text/plain")
            .unwrap()
            .as_str()
            .unwrap()
            .contains("a")
    );
}

async fn a_cell_that_asks_is_answered() {
    let bench = Bench::asking(true);
    let outbox = runtime_native::Outbox::new();
    let run = bench.kernels.execute(context(
        "name = input('Who? ')\nprint('Hello', name)",
        &outbox,
    ));
    let answer = async {
        loop {
            if let Some(question) = outbox.take_question() {
                assert_eq!(
                    (question.prompt.as_str(), question.password),
                    ("Who? ", false)
                );
                outbox.answer(Some("Ada".to_owned()));
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (finished, ()) = tokio::join!(run, answer);
    assert_eq!(finished, Finished::Ok);
    let printed = outbox.take();
    assert!(format!("{printed:?}").contains("Hello Ada"), "{printed:?}");
}

async fn where_nobody_can_be_asked_input_fails_at_once() {
    let bench = Bench::new();
    let ran = bench.run("input('Who? ')").await;
    assert_eq!(
        ran.error().unwrap().0,
        "StdinNotImplementedError",
        "{ran:?}"
    );
}

/// Text without the colours of a terminal.
fn plain(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| {
        plain + piece.split_once('m').map_or("", |(_, rest)| rest)
    })
}

async fn a_flood_of_displays_comes_to_its_end_and_the_next_cell_runs() {
    let bench = Bench::new();
    let ran = bench
        .run("from IPython.display import display\nfor i in range(5000): display(i)")
        .await;
    assert_eq!(ran.finished, Finished::Ok);
    let shown = |said: &&Said| matches!(said, Said::Display { .. });
    assert!(ran.said.iter().filter(shown).count() > 100);
    let ran = bench.run("1/0").await;
    assert!(matches!(ran.finished, Finished::Failed(_)), "{ran:?}");
    // At once behind a cell that failed.
    let ran = bench.run("6*7").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "42", "{ran:?}");
}

async fn what_is_too_large_takes_no_room_here_and_is_told() {
    let bench = Bench::new();
    bench.run("1").await;
    let before = peak();
    let ran = bench
        .run("from IPython.display import HTML, display\ndisplay(HTML('x' * (200 << 20)))\nprint('on')\n6*7")
        .await;
    assert_eq!(ran.finished, Finished::Ok);
    let told = format!("{:?}", ran.said);
    assert!(
        told.contains(
            "The kernel sent 200 MiB at once, and no more than 64 are taken. It is not shown."
        ),
        "{told}"
    );
    assert_eq!(ran.printed(), "on\n");
    assert_eq!(ran.shown("text/plain").unwrap(), "42");
    let grown = peak() - before;
    assert!(grown < 150 << 10, "{grown} KiB more at the most");
}

async fn an_end_that_is_too_large_is_an_end() {
    let bench = Bench::new();
    let ran = bench.run("raise ValueError('x' * (70 << 20))").await;
    let Finished::Failed(failed) = &ran.finished else {
        panic!("{:?}", ran.finished);
    };
    assert!(
        failed.message.contains("no more than 64 are taken"),
        "{}",
        failed.message
    );
    let ran = bench.run("6*7").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "42");
}

async fn text_that_is_not_unicode_is_shown_and_the_next_cell_runs() {
    let bench = Bench::new();
    let ran = bench.run(r"raise ValueError('\udcff')").await;
    let words = "ValueError: \u{fffd}".to_owned();
    assert_eq!(ran.finished, Finished::failed(words), "{ran:?}");
    let error = ("ValueError".to_owned(), "\u{fffd}".to_owned());
    assert_eq!(ran.error(), Some(error), "{ran:?}");
    let ran = bench.run(r"print('a\udcffb')").await;
    assert_eq!(ran.finished, Finished::Ok, "{ran:?}");
    assert_eq!(ran.printed(), "a\u{fffd}b\n");
    // These have no byte that they stand for.
    let ran = bench.run(r"raise ValueError('\ud800')").await;
    assert!(matches!(ran.finished, Finished::Failed(_)), "{ran:?}");
    let ran = bench.run("6*7").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "42", "{ran:?}");
}

async fn what_cannot_be_read_is_told_and_the_next_cell_runs() {
    let bench = Bench::new();
    bench
        .run("session = get_ipython().kernel.session\npack = session.pack")
        .await;
    let ran = bench
        .run("session.pack = lambda it: b'{' if it.get('name') == 'stdout' else pack(it)\nprint('x', flush=True)\nsession.pack = pack")
        .await;
    assert_eq!(ran.finished, Finished::Ok, "{ran:?}");
    let told = ran.told();
    assert!(
        told.starts_with("A message of the kernel could not be read (its content:"),
        "{ran:?}"
    );
    assert!(told.ends_with("It is not shown.\n"), "{ran:?}");
    let ran = bench
        .run("def once(it):\n    if 'status' not in it: return pack(it)\n    session.pack = pack\n    return b'{'\nsession.pack = once")
        .await;
    let Finished::Failed(failed) = &ran.finished else {
        panic!("{ran:?}");
    };
    assert!(
        failed
            .message
            .starts_with("A message of the kernel could not be read"),
        "{ran:?}"
    );
    let ran = bench.run("6*7").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "42", "{ran:?}");
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.unwrap().split_whitespace().nth(1);
    words.unwrap().parse().unwrap()
}
