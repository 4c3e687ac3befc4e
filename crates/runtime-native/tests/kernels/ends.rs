//! What stops cells and kernels.

use notebook::Failed;
use runtime_native::{Finished, Outbox};

use crate::support::{Bench, context, processes_of, said};

crate::trials!(
    an_interrupted_cell_is_cancelled_and_the_kernel_knows_what_it_knew,
    a_cell_that_will_not_stop_is_ended_with_its_kernel,
    a_kernel_that_is_killed_is_told_and_the_next_cell_has_a_new_one,
    a_kernel_that_takes_no_cell_any_more_is_started_anew_for_it,
    the_cell_after_one_that_exits_runs_on_a_new_kernel,
    a_kernel_that_is_restarted_knows_nothing,
    nothing_is_left_when_a_kernel_ends,
    a_cell_that_reads_what_nobody_types_is_not_kept_waiting,
    a_kernel_that_cannot_start_says_why,
);

/// Runs a cell and tells it to stop once it has printed something.
async fn interrupted(bench: &Bench, source: &str) -> Finished {
    let outbox = Outbox::new();
    let run = bench.kernels.execute(context(source, &outbox));
    let stop = async {
        said(&outbox).await;
        outbox.cancel();
    };
    tokio::join!(run, stop).0
}

async fn an_interrupted_cell_is_cancelled_and_the_kernel_knows_what_it_knew() {
    let bench = Bench::new();
    bench.run("x = 41").await;
    let source = "import time\nprint('on', flush=True)\ntime.sleep(600)";
    assert_eq!(interrupted(&bench, source).await, Finished::Cancelled);
    let ran = bench.run("x + 1").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "42", "{ran:?}");
}

async fn a_cell_that_will_not_stop_is_ended_with_its_kernel() {
    let bench = Bench::new();
    bench.run("x = 41").await;
    let source = "while True:\n    try:\n        print('on', flush=True)\n        while True: pass\n    except KeyboardInterrupt: pass";
    assert_eq!(interrupted(&bench, source).await, Finished::Cancelled);
    assert_eq!(processes_of(&bench.state()), Vec::<String>::new());
    let ran = bench.run("'x' in globals()").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "False", "{ran:?}");
}

async fn a_kernel_that_is_killed_is_told_and_the_next_cell_has_a_new_one() {
    let bench = Bench::new();
    let ran = bench
        .run("x = 1\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        .await;
    let Finished::Failed(Failed { kind, message }) = &ran.finished else {
        panic!("{ran:?}");
    };
    assert_eq!(kind, "runtime_lost");
    assert!(message.contains("signal 9"), "{message}");
    let ran = bench.run("'x' in globals()").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "False", "{ran:?}");
}

/// What a kernel does on its way out: the socket for its cells closes before it ends.
const CLOSES: &str = "import os, socket, threading, time
def close():
    while not os.path.exists('go'): time.sleep(0.005)
    for name in os.listdir('/proc/self/fd'):
        try:
            it = socket.socket(fileno=os.dup(int(name)))
            waits = it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if not waits and str(it.getsockname()).endswith('k-1'):
                it.shutdown(socket.SHUT_RDWR)
        except OSError: pass
    open('gone', 'w').close()
x = 1
threading.Thread(target=close).start()";

async fn a_kernel_that_takes_no_cell_any_more_is_started_anew_for_it() {
    let bench = Bench::new();
    assert_eq!(bench.run(CLOSES).await.finished, Finished::Ok);
    std::fs::write(bench.workspace().join("go"), "").unwrap();
    while !bench.workspace().join("gone").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // What reads the socket here hears of it first.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let ran = bench.run("'x' in globals()").await;
    assert_eq!(ran.finished, Finished::Ok, "{ran:?}");
    assert_eq!(ran.shown("text/plain").unwrap(), "False", "{ran:?}");
    let told = "The kernel is started anew; what it knew is gone.\n";
    assert_eq!(ran.told(), told);
}

async fn the_cell_after_one_that_exits_runs_on_a_new_kernel() {
    let bench = Bench::new();
    let told = "The kernel is started anew; what it knew is gone.\n";
    bench
        .run("x = 1\nimport atexit\natexit.register(lambda: open('left', 'w').close())")
        .await;
    for exits in ["exit()", "get_ipython().ask_exit()", "exit()"] {
        assert_eq!(bench.run(exits).await.finished, Finished::Ok);
        let ran = bench.run("'x' in globals()").await;
        assert_eq!(ran.finished, Finished::Ok, "{exits}: {ran:?}");
        assert_eq!(ran.shown("text/plain").unwrap(), "False", "{ran:?}");
        assert_eq!(ran.told(), told);
        // It was not cut off.
        assert!(bench.workspace().join("left").exists());
    }
    assert_eq!(bench.run("x = 1\nexit(True)").await.finished, Finished::Ok);
    let ran = bench.run("x").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "1", "{ran:?}");
}

async fn a_kernel_that_is_restarted_knows_nothing() {
    let bench = Bench::new();
    bench.run("x = 1").await;
    bench.kernels.restart().await.unwrap();
    let ran = bench.run("'x' in globals()").await;
    assert_eq!(ran.shown("text/plain").unwrap(), "False", "{ran:?}");
}

async fn nothing_is_left_when_a_kernel_ends() {
    let bench = Bench::new();
    let ran = bench
        .run("import subprocess\nsubprocess.Popen(['setsid', 'sleep', '7654'], start_new_session=True).pid > 0")
        .await;
    assert_eq!(ran.finished, Finished::Ok, "{ran:?}");
    assert!(!processes_of(&bench.state()).is_empty());
    bench.kernels.end().await;
    assert_eq!(processes_of(&bench.state()), Vec::<String>::new());
    let sleeping = processes_of("sleep 7654".as_ref());
    assert_eq!(sleeping, Vec::<String>::new());
    let folders = std::fs::read_dir(bench.state().join("kernels")).unwrap();
    assert_eq!(folders.count(), 0, "its folder is gone");
}

async fn a_cell_that_reads_what_nobody_types_is_not_kept_waiting() {
    let bench = Bench::new();
    let line = "import subprocess, sys\n(sys.stdin.readline(), subprocess.run(['cat'], capture_output=True).stdout)";
    let ran = bench.run(line).await;
    assert_eq!(ran.shown("text/plain").unwrap(), "('', b'')", "{ran:?}");
}

async fn a_kernel_that_cannot_start_says_why() {
    let bench = Bench::new();
    let mut spec = crate::support::spec();
    spec.argv = [
        "/bin/sh",
        "-c",
        "echo no such thing >&2; exit 3",
        "{connection_file}",
    ]
    .map(str::to_owned)
    .to_vec();
    let told = bench.another(spec).start().await.unwrap_err();
    assert_eq!(told.kind(), "runtime_lost");
    let told = told.to_string();
    assert!(
        told.contains("exited with 3") && told.contains("no such thing"),
        "{told}"
    );
}
