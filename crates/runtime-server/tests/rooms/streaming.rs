//! Output while it happens.

use protocol::Encoding;
use protocol::method::OutputStream;
use serde_json::json;

use crate::support::{Told, bytes, client};

crate::trials![
    output_arrives_while_the_command_runs,
    all_output_arrives_in_order_before_the_result,
    bytes_that_are_no_text_arrive_intact,
    a_character_is_never_split,
    the_result_keeps_head_and_tail_and_says_what_was_cut,
    what_is_over_the_cap_is_dropped_and_told_once,
];

async fn output_arrives_while_the_command_runs() {
    let mut client = client().await;
    // It ends only when the file is there, which is made only when its output has been seen.
    let line = "echo ready; while [ ! -e go ]; do sleep 0.01; done; echo done";
    let running = client.start("1", "terminal.run", json!({"command": line}));
    let first = client.output().await;
    assert_eq!(
        (
            first.id.as_str(),
            first.seq,
            first.stream,
            first.data.as_str()
        ),
        ("1", 0, OutputStream::Stdout, "ready\n")
    );
    std::fs::write(client.path().join("go"), "").unwrap();
    let result = running.await.unwrap().unwrap();
    assert_eq!(result["stdout"], "ready\ndone\n");
    assert_eq!(client.output().await.data, "done\n");
}

async fn all_output_arrives_in_order_before_the_result() {
    let mut client = client().await;
    let line = "for i in $(seq 1 20000); do echo line $i; done; echo oops >&2";
    let params = json!({"command": line});
    client.execute("1", "terminal.run", params).await.unwrap();
    let told = client.all_told();
    let expected: String = (1..=20_000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(
        String::from_utf8(bytes(&told, OutputStream::Stdout)).unwrap(),
        expected
    );
    assert_eq!(bytes(&told, OutputStream::Stderr), b"oops\n");
    // Many lines a piece, not a piece a line.
    assert!(told.len() < 2_000, "{} pieces", told.len());
}

async fn bytes_that_are_no_text_arrive_intact() {
    let mut client = client().await;
    let params = json!({"command": "printf '\\377\\376\\000'; printf '\\303' >&2"});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    assert_eq!(
        (&result["stdout"], &result["stdout_encoding"]),
        (&json!("//4A"), &json!("base64"))
    );
    assert_eq!(
        (&result["stderr"], &result["stderr_encoding"]),
        (&json!("ww=="), &json!("base64"))
    );
    let told = client.all_told();
    assert_eq!(bytes(&told, OutputStream::Stdout), [0xff, 0xfe, 0]);
    assert_eq!(bytes(&told, OutputStream::Stderr), [0xc3]);
}

async fn a_character_is_never_split() {
    let mut client = client().await;
    // The halves of a character in two writes, with the reader given time between.
    let line = "printf 'a\\303'; while [ ! -e go ]; do sleep 0.01; done; printf '\\266b'";
    let running = client.start("1", "terminal.run", json!({"command": line}));
    assert_eq!(client.output().await.data, "a");
    std::fs::write(client.path().join("go"), "").unwrap();
    let second = client.output().await;
    assert_eq!(
        (second.data.as_str(), second.encoding),
        ("öb", Encoding::Utf8)
    );
    assert_eq!(running.await.unwrap().unwrap()["stdout"], "aöb");
}

async fn the_result_keeps_head_and_tail_and_says_what_was_cut() {
    let mut client = client().await;
    let line = "head -c 100000 /dev/zero | tr '\\0' a; head -c 100000 /dev/zero | tr '\\0' b";
    let params = json!({"command": line});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    let kept = 32 * 1024;
    let cut = 200_000 - 2 * kept;
    assert_eq!(
        result["stdout"],
        format!(
            "{}\n[{cut} bytes were cut here]\n{}",
            "a".repeat(kept),
            "b".repeat(kept)
        )
    );
    assert_eq!(result["truncated"], true);
    assert_eq!(result["cut"], json!({"stdout": cut, "stderr": 0}));
    let streamed = bytes(&client.all_told(), OutputStream::Stdout);
    assert_eq!(streamed.len(), 200_000);
}

async fn what_is_over_the_cap_is_dropped_and_told_once() {
    let mut client = client().await;
    let size = 20_000_000;
    let params = json!({"command": format!("head -c {size} /dev/zero | tr '\\0' x")});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    assert_eq!(result["exit_code"], 0);
    let told = client.all_told();
    let streamed = bytes(&told, OutputStream::Stdout).len();
    assert!(streamed <= 16 * 1024 * 1024, "{streamed}");
    let dropped: Vec<String> = told
        .iter()
        .filter_map(|told| match told {
            Told::Output(output) if output.stream == OutputStream::Dropped => {
                Some(output.data.clone())
            }
            Told::Output(_) | Told::Exited(_) | Told::Status(_) => None,
        })
        .collect();
    assert_eq!(dropped, [(size - streamed).to_string()]);
}
