//! The kernel's machinery that no build needs. What the host looks for is the descriptor that each
//! of these calls would give.

use crate::check::Seen;
use crate::scene::Scene;

checks! {
    io_uring_is_closed:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| gives(scene, "io-uring", "[io_uring]");
    io_uring_is_closed_under_the_numbers_of_x32:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| gives(scene, "io-uring-x32", "[io_uring]");
    io_uring_is_closed_to_32_bit_calls:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| gives(scene, "io-uring-i386", "[io_uring]");
    bpf_is_closed:
        Anyone, None("the kernel gives it to nobody in a user namespace, unless it gives it to everybody"), Hold,
        |scene| gives(scene, "bpf", "bpf-map");
    performance_counters_are_closed:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| gives(scene, "perf", "[perf_event]");
    faults_in_user_space_are_closed:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| gives(scene, "userfault", "[userfaultfd]");
    watching_the_file_system_is_closed:
        Anyone, WithoutWhereAllowed("seccomp,capabilities"), Hold, |scene| gives(scene, "fanotify", "[fanotify]");
}

fn gives(scene: &Scene, attack: &str, descriptor: &str) -> Seen {
    let waiting = scene.hold(&[], &[attack]);
    Seen::escape_if(waiting.has_descriptor(descriptor))
}
