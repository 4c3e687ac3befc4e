//! Somebody changes the tree while an action looks at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags};
use serde_json::json;

use crate::support::{Fixture, SECRET};

/// Enough turns to meet every order of events many times over, and soon done.
const FOR: Duration = Duration::from_millis(700);

/// Runs `swap` over and over on a thread of its own while it lives.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    fn start(mut swap: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                swap();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// `door` is a folder, and then a link to the folder outside, and then a folder again.
fn swapped_door() -> (Fixture, Swapping) {
    let fixture = Fixture::with(&[("door/secret", "inside")]);
    let outside = fixture.outside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), SECRET).unwrap();
    fixture.link("link", &outside);
    let (door, link) = (fixture.path("door"), fixture.path("link"));
    let swapping = Swapping::start(move || {
        rustix::fs::renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    });
    (fixture, swapping)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_swapped_for_a_link_never_leads_a_read_out() {
    let (fixture, swapping) = swapped_door();
    let end = Instant::now() + FOR;
    let (mut read, mut refused) = (0, 0);
    while Instant::now() < end {
        for (action, params) in [
            ("fs.read", json!({"path": "door/secret"})),
            ("fs.search", json!({"path": ".", "pattern": "."})),
            ("fs.list", json!({"path": ".", "depth": 3})),
        ] {
            match fixture.run(action, params).await {
                Ok(answer) => {
                    assert!(!answer.to_string().contains(SECRET), "{answer}");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    drop(swapping);
    assert!(
        read > 0 && refused > 0,
        "{read} read, {refused} refused: nothing was tried"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_swapped_for_a_link_never_leads_a_change_out() {
    let (fixture, swapping) = swapped_door();
    let end = Instant::now() + FOR;
    let (mut done, mut refused) = (0, 0);
    while Instant::now() < end {
        for (action, params) in [
            (
                "fs.write",
                json!({"path": "door/secret", "content": "written"}),
            ),
            (
                "fs.write",
                json!({"path": "door/new/file", "content": "written"}),
            ),
            (
                "fs.edit",
                json!({"path": "door/secret", "edits": [{"old": "written", "new": "edited"}]}),
            ),
            ("fs.delete", json!({"path": "door/new", "recursive": true})),
        ] {
            match fixture.run(action, params).await {
                Ok(_) => done += 1,
                Err(_) => refused += 1,
            }
        }
    }
    drop(swapping);
    assert!(
        done > 0 && refused > 0,
        "{done} done, {refused} refused: nothing was tried"
    );
    let outside = fixture.outside("outside");
    assert_eq!(
        std::fs::read_to_string(outside.join("secret")).unwrap(),
        SECRET
    );
    let names: Vec<_> = std::fs::read_dir(outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["secret"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_never_sees_a_file_half_written() {
    let fixture = Fixture::with(&[("file", &"a".repeat(300_000))]);
    let path = fixture.path("file");
    let torn = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&torn);
    let reading = Swapping::start(move || {
        let text = std::fs::read(&path).unwrap();
        let whole = text.len() == 300_000 && text.iter().all(|byte| *byte == text[0]);
        seen.fetch_or(!whole, Ordering::Relaxed);
    });
    let end = Instant::now() + FOR;
    for letter in ["b", "c"].iter().cycle() {
        if Instant::now() > end {
            break;
        }
        let params = json!({"path": "file", "content": letter.repeat(300_000)});
        fixture.run("fs.write", params).await.unwrap();
    }
    drop(reading);
    assert!(!torn.load(Ordering::Relaxed));
    assert_eq!(fixture.all(), ["file"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_at_the_same_time_lose_nothing() {
    let lines: String = (0..16).map(|number| format!("<{number}>\n")).collect();
    let fixture = Arc::new(Fixture::with(&[("file", &lines)]));
    let edits: Vec<_> = (0..16)
        .map(|number| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                let edit = json!({"old": format!("<{number}>"), "new": format!("[{number}]")});
                let params = json!({"path": "file", "edits": [edit]});
                // Whoever comes second is told so, and reads again.
                loop {
                    match fixture.run("fs.edit", params.clone()).await {
                        Ok(_) => return,
                        Err(failure) => {
                            assert_eq!(failure.kind, protocol::ErrorKind::Changed, "{failure}");
                        }
                    }
                }
            })
        })
        .collect();
    for edit in edits {
        edit.await.unwrap();
    }
    let expected: String = (0..16).map(|number| format!("[{number}]\n")).collect();
    assert_eq!(fixture.text("file"), expected);
}
