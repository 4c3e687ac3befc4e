//! What a cell cannot reach, tried from inside one.

use std::io::Write as _;
use std::net::TcpListener;

use runtime_native::Finished;

use crate::support::Bench;

crate::trials!(
    a_cell_reads_neither_the_home_folder_nor_what_is_outside_the_workspace,
    a_cell_reaches_no_network_and_no_process_outside,
    a_cell_sees_no_other_kernels_sockets,
    what_a_cell_plants_is_set_aside_before_it_is_over_and_said,
);

/// Runs a cell that prints `refused` where what it tries is.
async fn refused(bench: &Bench, tries: &str) {
    let source =
        format!("try:\n    print('GOT', {tries})\nexcept Exception as e:\n    print('refused')");
    let ran = bench.run(&source).await;
    assert_eq!(ran.printed(), "refused\n", "{tries}: {ran:?}");
}

async fn a_cell_reads_neither_the_home_folder_nor_what_is_outside_the_workspace() {
    let home = std::env::home_dir().unwrap();
    let mut secret = tempfile::Builder::new()
        .prefix(".ward-test-")
        .tempfile_in(&home)
        .unwrap();
    secret.write_all(b"secret").unwrap();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let bench = Bench::new();
    std::fs::write(bench.workspace().join("mine"), "mine").unwrap();
    for path in [secret.path().to_owned(), outside.path().join("secret")] {
        refused(
            &bench,
            &format!("open({:?}).read()", path.display().to_string()),
        )
        .await;
    }
    // A shell of the cell's is behind the same wall.
    let read = format!("!cat {} 2>/dev/null; echo then", secret.path().display());
    assert_eq!(bench.run(&read).await.printed().trim(), "then");
    let venv = crate::support::environment();
    refused(
        &bench,
        &format!("open({:?}, 'w')", venv.join("x").display().to_string()),
    )
    .await;
    refused(&bench, "open('/etc/ward-test', 'w')").await;
    refused(
        &bench,
        &format!(
            "open({:?}, 'w')",
            outside.path().join("new").display().to_string()
        ),
    )
    .await;
    let ran = bench
        .run("open('mine').read() + open('/etc/hostname').read()[:0]")
        .await;
    assert_eq!(ran.shown("text/plain").unwrap(), "'mine'", "{ran:?}");
    let ran = bench.run("open('made', 'w').write('x')").await;
    assert_eq!(ran.finished, Finished::Ok);
    assert_eq!(
        std::fs::read_to_string(bench.workspace().join("made")).unwrap(),
        "x"
    );
}

async fn a_cell_reaches_no_network_and_no_process_outside() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bench = Bench::new();
    bench.run("import os, socket").await;
    refused(
        &bench,
        &format!("socket.create_connection(('127.0.0.1', {port}), 2)"),
    )
    .await;
    refused(&bench, "socket.create_connection(('1.1.1.1', 53), 2)").await;
    refused(&bench, "socket.getaddrinfo('example.org', 80)").await;
    refused(&bench, &format!("os.kill({}, 0)", std::process::id())).await;
    refused(
        &bench,
        &format!("open('/proc/{}/environ').read()", std::process::id()),
    )
    .await;
    let ran = bench
        .run("sorted(name for name in os.environ if 'TOKEN' in name or 'KEY' in name)")
        .await;
    assert_eq!(ran.shown("text/plain").unwrap(), "[]", "{ran:?}");
}

async fn a_cell_sees_no_other_kernels_sockets() {
    let bench = Bench::new();
    bench.run("import os").await;
    // A second kernel of the same user, with its sockets beside the first one's.
    let other = bench.another(crate::support::spec());
    other.start().await.unwrap();
    // Each has a folder that its kernel sees, and one that it does not.
    let folders = std::fs::read_dir(bench.state().join("kernels")).unwrap();
    assert_eq!(folders.count(), 2);
    let kernels = bench.state().join("kernels").display().to_string();
    let seen =
        format!("[os.listdir(os.path.join({kernels:?}, it)) for it in os.listdir({kernels:?})]");
    let ran = bench.run(&seen).await;
    assert_eq!(ran.shown("text/plain").unwrap(), "[['k']]", "{ran:?}");
    other.end().await;
}

async fn what_a_cell_plants_is_set_aside_before_it_is_over_and_said() {
    let bench = Bench::new();
    let planted = ["AGENTS.md", "ward.toml", ".vscode"];
    let plant = "import os\nopen('ward.toml', 'w').write('x')\nopen('AGENTS.md', 'w').write('x')\nos.makedirs('.vscode', exist_ok=True)\nopen('.vscode/tasks.json', 'w').write('{}')\nopen('plain', 'w').close()";
    // The second time as well: that a cell made it once does not make it the person's.
    let dies = format!("{plant}\nos.kill(os.getpid(), 9)");
    for source in [plant, plant, dies.as_str()] {
        let ran = bench.run(source).await;
        let told = ran.told();
        for name in planted {
            let path = bench.workspace().canonicalize().unwrap().join(name);
            let path = path.display();
            assert!(told.contains(&format!("set aside: {path} (")), "{ran:?}");
        }
        assert!(told.contains("`ward aside restore "), "{told}");
        assert_eq!(left(&bench), ["plain"], "{ran:?}");
    }
}

/// What lies in the workspace.
fn left(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.workspace()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
