//! The variables that lead the usual tools to the proxy.

/// What goes into the environment of a command whose room has its proxy at `127.0.0.1:port`.
///
/// Loopback is left out of it: a server that a test starts in the room is reached directly. A
/// loopback host that was named (`--net localhost:8080`) is therefore reached only by a program
/// that is told to use the proxy for it, such as `curl --noproxy ''`.
#[must_use]
pub fn env(port: u16) -> Vec<(&'static str, String)> {
    let http = format!("http://127.0.0.1:{port}");
    // socks5h: the h makes the client leave the looking up of names to the proxy; there is no name
    // server in the room.
    let socks = format!("socks5h://127.0.0.1:{port}");
    let loopback = "localhost,127.0.0.1,::1".to_owned();
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port} -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
    );
    vec![
        // curl, git, pip, npm, pnpm, Go, Ruby, cargo and most others; some read only the one, some
        // only the other case (curl reads no HTTP_PROXY).
        ("HTTP_PROXY", http.clone()),
        ("http_proxy", http.clone()),
        ("HTTPS_PROXY", http.clone()),
        ("https_proxy", http.clone()),
        // What is neither http nor https, in programs that speak SOCKS.
        ("ALL_PROXY", socks.clone()),
        ("all_proxy", socks),
        ("NO_PROXY", loopback.clone()),
        ("no_proxy", loopback),
        // Node's own fetch and http read the variables above only where this says so.
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
        // Yarn 2 and later read their own settings only.
        ("YARN_HTTP_PROXY", http.clone()),
        ("YARN_HTTPS_PROXY", http),
        // rsync:// asks an HTTP proxy for a CONNECT.
        ("RSYNC_PROXY", format!("127.0.0.1:{port}")),
        // The JVM reads no environment; JAVA_TOOL_OPTIONS would write a line into each program's
        // standard error, so only the two build tools are told.
        ("MAVEN_OPTS", java.clone()),
        ("GRADLE_OPTS", java),
    ]
}

#[cfg(test)]
mod tests {
    use super::env;

    #[test]
    fn the_usual_variables_are_set_in_both_cases() {
        let env = env(3128);
        let value = |name: &str| {
            let found = env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.as_str())
        };
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            assert_eq!(value(name), Some("http://127.0.0.1:3128"));
        }
        assert_eq!(value("ALL_PROXY"), Some("socks5h://127.0.0.1:3128"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            assert_eq!(value(name), value(&name.to_lowercase()));
        }
    }
}
