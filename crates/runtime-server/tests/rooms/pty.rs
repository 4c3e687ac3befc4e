//! Real terminals.

use serde_json::{Value, json};

use crate::support::{Client, Told, client, odd_seconds, processes_with, until_processes};

crate::trials![
    a_shell_in_a_terminal_answers_what_is_typed,
    a_terminal_has_the_size_it_was_given,
    closing_a_terminal_ends_what_runs_in_it,
    control_c_ends_the_program_and_not_the_shell,
];

async fn open(client: &Client, params: Value) -> String {
    let result = client.execute("open", "terminal.open", params).await;
    let result = result.unwrap();
    result["terminal_id"].as_str().unwrap().to_owned()
}

async fn write(client: &Client, id: &str, terminal: &str, data: &str) {
    let params = json!({"terminal_id": terminal, "data": data});
    let written = client.execute(id, "terminal.write", params).await;
    assert_eq!(written, Ok(json!({"changed": true})));
}

async fn a_shell_in_a_terminal_answers_what_is_typed() {
    let mut client = client().await;
    let terminal = open(&client, json!({"cols": 80, "rows": 24})).await;
    write(&client, "1", &terminal, "echo $((40 + 2)) $TERM; tty\n").await;
    let shown = client.output_until("/dev/pts/").await;
    assert!(shown.contains("42 xterm-256color\r\n"), "{shown:?}");
    write(&client, "2", &terminal, "exit 7\n").await;
    loop {
        if let Told::Exited(exited) = client.told.recv().await.unwrap() {
            assert_eq!(
                (exited.id.as_str(), exited.terminal_id, exited.exit_code),
                ("open", terminal, Some(7))
            );
            break;
        }
    }
}

async fn a_terminal_has_the_size_it_was_given() {
    let mut client = client().await;
    let line = "trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done";
    let terminal = open(&client, json!({"command": line, "cols": 100, "rows": 30})).await;
    client.output_until("30 100\r\n").await;
    let size = json!({"terminal_id": terminal, "cols": 120, "rows": 40});
    assert_eq!(
        client.execute("1", "terminal.resize", size.clone()).await,
        Ok(json!({"changed": true}))
    );
    client.output_until("40 120\r\n").await;
    assert_eq!(
        client.execute("2", "terminal.resize", size).await,
        Ok(json!({"changed": false}))
    );
}

async fn closing_a_terminal_ends_what_runs_in_it() {
    let client = client().await;
    let seconds = odd_seconds();
    let line = format!("trap '' HUP TERM; sleep {seconds}; sleep {seconds}; true");
    let terminal = open(&client, json!({"command": line})).await;
    until_processes(&seconds, 1).await;
    let named = json!({"terminal_id": terminal});
    assert_eq!(
        client.execute("1", "terminal.close", named).await,
        Ok(json!({"changed": true}))
    );
    assert_eq!(processes_with(&seconds), 0);
}

async fn control_c_ends_the_program_and_not_the_shell() {
    let mut client = client().await;
    let seconds = odd_seconds();
    let terminal = open(&client, json!({})).await;
    write(&client, "1", &terminal, &format!("sleep {seconds}\n")).await;
    until_processes(&seconds, 1).await;
    write(&client, "2", &terminal, "\u{3}").await;
    until_processes(&seconds, 0).await;
    write(&client, "3", &terminal, "echo still $((1 + 1)) here\n").await;
    client.output_until("still 2 here").await;
}
