//! The network: nothing but the proxy leads out, and the proxy only where it was told to.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::check::Seen;
use crate::listeners::{LOOPBACK, Listener, own_address};
use crate::scene::{Held, Scene};

checks! {
    a_tcp_listener_on_loopback_is_not_reached:
        Anyone, Without("network,seccomp,landlock"), Hold, tcp;
    a_tcp_listener_on_the_machines_address_is_not_reached:
        Anyone, WithoutWhereAllowed("network,seccomp,landlock"), Hold, tcp_beyond_loopback;
    a_udp_listener_is_not_reached:
        Anyone, Without("network,seccomp"), Hold, udp;
    a_dns_question_is_not_heard:
        Anyone, Without("network,seccomp"), Hold, dns;
    a_connection_without_connect_is_not_made:
        Anyone, WithoutWhereAllowed("network,seccomp,landlock"), Hold, fast_open;
    multipath_tcp_is_no_way_around:
        Anyone, WithoutWhereAllowed("network,seccomp,landlock"), Hold, multipath;
    a_unix_socket_in_tmp_is_not_reached:
        Anyone, Without("root,landlock,seccomp"), Hold, unix_in_tmp;
    a_unix_socket_outside_is_not_reached:
        Anyone, Without("root,landlock,seccomp"), Hold, unix_outside;
    a_unix_socket_in_the_workspace_is_not_reached:
        Anyone, Without("root,landlock,seccomp"), Hold, unix_in_workspace;
    a_unix_socket_inside_a_repository_is_not_reached:
        Anyone, Without("root,landlock,seccomp"), Hold, unix_in_repository;
    an_abstract_unix_socket_is_not_reached:
        Anyone, Without("network,landlock,seccomp"), Hold, abstract_socket;
    no_vsock_socket_is_made:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| family(scene, 40);
    no_packet_socket_is_made:
        Anyone, WithoutWhereAllowed("seccomp,capabilities"), Hold, |scene| family(scene, 17);
    no_socket_of_the_kernels_ciphers_is_made:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| family(scene, 38);
    netlink_shows_no_interface_of_the_host:
        Anyone, WithoutWhereAllowed("network,seccomp"), Hold, interfaces;
    the_proxy_lets_only_the_named_port_through:
        Anyone, Without("network,landlock,seccomp"), Hold, other_port;
    around_the_proxy_is_no_way:
        Anyone, Without("network,landlock,seccomp"), Hold, around_the_proxy;
    around_the_proxy_is_no_way_without_connect:
        Anyone, WithoutWhereAllowed("network,landlock,seccomp"), Hold, around_by_fast_open;
    around_the_proxy_is_no_way_by_multipath_tcp:
        Anyone, WithoutWhereAllowed("network,landlock,seccomp"), Hold, around_by_multipath;
}

fn reach(scene: &Scene, how: &str, listener: &Listener) -> Seen {
    let [address, port] = listener.words();
    scene.attack(&[how, &address, &port]);
    listener.heard()
}

fn tcp(scene: &Scene) -> Seen {
    reach(scene, "tcp", &Listener::tcp(LOOPBACK))
}

fn tcp_beyond_loopback(scene: &Scene) -> Seen {
    own_address().map_or(Seen::Nothing, |ip| reach(scene, "tcp", &Listener::tcp(ip)))
}

fn udp(scene: &Scene) -> Seen {
    let beyond = own_address().map(|ip| reach(scene, "udp", &Listener::udp(ip)));
    match beyond {
        Some(Seen::Escape) => Seen::Escape,
        Some(Seen::Nothing) | None => reach(scene, "udp", &Listener::udp(LOOPBACK)),
    }
}

fn dns(scene: &Scene) -> Seen {
    reach(scene, "dns", &Listener::udp(LOOPBACK))
}

fn fast_open(scene: &Scene) -> Seen {
    reach(scene, "fastopen", &Listener::tcp(LOOPBACK))
}

fn multipath(scene: &Scene) -> Seen {
    reach(scene, "mptcp", &Listener::tcp(LOOPBACK))
}

fn unix_at(scene: &Scene, path: &str) -> Seen {
    let listener = Listener::at(std::path::Path::new(path));
    scene.attack(&["unix", path]);
    listener.heard()
}

fn unix_in_tmp(scene: &Scene) -> Seen {
    let path = format!("/tmp/{}.sock", scene.name());
    let seen = unix_at(scene, &path);
    std::fs::remove_file(path).unwrap();
    seen
}

fn unix_outside(scene: &Scene) -> Seen {
    // As a session bus or an ssh agent would be, and past the workspace by a link in it.
    let listener = Listener::at(&scene.path("outside/agent.sock"));
    std::os::unix::fs::symlink("../outside/agent.sock", scene.path("work/link")).unwrap();
    for path in [scene.word("outside/agent.sock"), "link".into()] {
        scene.attack(&["unix", &path]);
    }
    listener.heard()
}

fn unix_in_workspace(scene: &Scene) -> Seen {
    unix_at(scene, &scene.word("work/s"))
}

fn unix_in_repository(scene: &Scene) -> Seen {
    scene.folder("work/.git/objects");
    scene.folder("work/.git/watch");
    unix_at(scene, &scene.word("work/.git/watch/s"))
}

fn abstract_socket(scene: &Scene) -> Seen {
    let name = scene.mark();
    let listener = Listener::abstract_name(&name);
    scene.attack(&["abstract", &name]);
    listener.heard()
}

fn family(scene: &Scene, number: u32) -> Seen {
    // Datagrams for the plain families, packets for the cipher's.
    let kind = if number == 38 { "5" } else { "2" };
    let waiting = scene.hold(&[], &["family", &number.to_string(), kind]);
    Seen::escape_if(waiting.has_descriptor("socket:"))
}

fn interfaces(scene: &Scene) -> Seen {
    scene.attack(&["interfaces"]);
    let theirs = scene.read("work/loot");
    let ours = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let mut beyond = ours.filter(|name| name.file_name() != "lo");
    Seen::escape_if(beyond.any(|name| theirs.lines().any(|line| name.file_name() == *line)))
}

/// One port is named; what comes to the other is an escape.
fn with_a_named_port(scene: &Scene, attacks: &[&str]) -> Seen {
    let (named, other) = (Listener::tcp(LOOPBACK), Listener::tcp(LOOPBACK));
    let net = named.words().join(":");
    let [address, port] = other.words();
    for attack in attacks {
        let words = ["./attack", attack, &address, &port];
        scene.run(&["--net", &net], &words);
    }
    // The way that is open is open.
    if scene.held != Held::Nothing {
        let [address, port] = named.words();
        let over = AtomicBool::new(false);
        let words = std::thread::scope(|scope| {
            let words = scope.spawn(|| named.first_words(&over));
            scene.run(&["--net", &net], &["./attack", "proxy", &address, &port]);
            over.store(true, Ordering::Relaxed);
            words.join().unwrap()
        });
        assert!(words.starts_with("escaped"), "{words:?}");
    }
    other.heard()
}

fn other_port(scene: &Scene) -> Seen {
    with_a_named_port(scene, &["proxy", "tcp"])
}

fn around_the_proxy(scene: &Scene) -> Seen {
    with_a_named_port(scene, &["tcp"])
}

fn around_by_fast_open(scene: &Scene) -> Seen {
    with_a_named_port(scene, &["fastopen"])
}

fn around_by_multipath(scene: &Scene) -> Seen {
    with_a_named_port(scene, &["mptcp"])
}
