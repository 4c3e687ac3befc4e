//! Which system calls a confined command may make, for x86_64 and aarch64.
//!
//! The filter names what is closed; the rest is open. What it closes no build, test or shell
//! needs: ways to new namespaces and mounts, to other processes' memory, to the kernel's own
//! machinery, to other socket families, to files that run as their owner. `clone3` and `openat2` do
//! not exist inside, because what they ask for lies in memory where a filter cannot see it; whoever
//! uses them falls back to `clone` and `openat`.

use super::bpf::{Instruction, Program, Test, Verdict};

/// The machine a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The machine this was built for.
    pub(crate) const HERE: Self = if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::X86_64
    };

    /// As the kernel's audit names it.
    pub(crate) fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    /// Where numbers of another call convention begin: x32, on x86_64.
    fn foreign(self) -> Option<u32> {
        match self {
            Self::X86_64 => Some(0x4000_0000),
            Self::Aarch64 => None,
        }
    }
}

/// A system call: its number on x86_64 and on aarch64, where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    x86_64: u32,
    aarch64: Option<u32>,
}

impl Call {
    /// Its number; none where the machine does not have it.
    pub(crate) fn number(self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => Some(self.x86_64),
            Arch::Aarch64 => self.aarch64,
        }
    }
}

/// Names a call that both machines have, or one that `x86_64` alone has.
macro_rules! call {
    ($name:ident) => {
        $crate::linux::filter::Call::both(
            syscalls::x86_64::Sysno::$name,
            syscalls::aarch64::Sysno::$name,
        )
    };
    (x86_64 $name:ident) => {
        $crate::linux::filter::Call::old(syscalls::x86_64::Sysno::$name)
    };
}
pub(crate) use call;

impl Call {
    /// For [`call`].
    pub(crate) const fn both(
        x86_64: syscalls::x86_64::Sysno,
        aarch64: syscalls::aarch64::Sysno,
    ) -> Self {
        Self {
            x86_64: x86_64.id() as u32,
            aarch64: Some(aarch64.id() as u32),
        }
    }

    /// For [`call`].
    pub(crate) const fn old(x86_64: syscalls::x86_64::Sysno) -> Self {
        Self {
            x86_64: x86_64.id() as u32,
            aarch64: None,
        }
    }
}

/// What sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// All families that a network namespace of its own holds in.
    Held,
    /// None but pairs: there is no network namespace around it.
    PairsOnly,
    /// TCP too, to the one port that Landlock leaves open.
    PairsAndTcp,
    /// Sockets by path too, to wait at: Landlock says where they can be made. Landlock does not see
    /// who connects to one, so nobody does.
    PairsAndServers,
}

/// Who keeps the bound on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// A control group, which counts all of it.
    Grouped,
    /// A watchdog, which cannot see what lies in files without a name: there are none then.
    Watched,
}

/// Never needed inside, and each a way out or a way deeper into the kernel.
const CLOSED: &[Call] = &[
    // other processes
    call!(ptrace),
    call!(process_vm_readv),
    call!(process_vm_writev),
    call!(process_madvise),
    call!(pidfd_getfd),
    call!(kcmp),
    // mounts and namespaces
    call!(mount),
    call!(umount2),
    call!(pivot_root),
    call!(chroot),
    call!(unshare),
    call!(setns),
    call!(open_tree),
    call!(move_mount),
    call!(fsopen),
    call!(fsconfig),
    call!(fsmount),
    call!(fspick),
    call!(mount_setattr),
    call!(open_tree_attr),
    call!(statmount),
    call!(listmount),
    // files past their path
    call!(open_by_handle_at),
    call!(name_to_handle_at),
    // the kernel's machinery
    call!(io_uring_setup),
    call!(io_uring_enter),
    call!(io_uring_register),
    call!(bpf),
    call!(perf_event_open),
    call!(userfaultfd),
    call!(fanotify_init),
    call!(keyctl),
    call!(add_key),
    call!(request_key),
    call!(kexec_load),
    call!(kexec_file_load),
    call!(init_module),
    call!(finit_module),
    call!(delete_module),
    call!(quotactl),
    call!(quotactl_fd),
    call!(swapon),
    call!(swapoff),
    call!(acct),
    call!(reboot),
    call!(settimeofday),
    call!(clock_settime),
    call!(clock_adjtime),
    call!(adjtimex),
    call!(syslog),
    call!(vhangup),
    call!(lookup_dcookie),
    call!(x86_64 iopl),
    call!(x86_64 ioperm),
    call!(x86_64 modify_ldt),
    call!(vmsplice),
    call!(migrate_pages),
    call!(move_pages),
    call!(mbind),
    call!(set_mempolicy),
    call!(nfsservctl),
    call!(x86_64 uselib),
    call!(x86_64 ustat),
    call!(x86_64 sysfs),
    call!(x86_64 _sysctl),
];

/// `CLONE_NEW*`: time, ns, cgroup, uts, ipc, user, pid, net.
const NEW_NAMESPACES: u32 = 0x80
    | 0x0002_0000
    | 0x0200_0000
    | 0x0400_0000
    | 0x0800_0000
    | 0x1000_0000
    | 0x2000_0000
    | 0x4000_0000;

/// Terminal requests that type into, or take over, somebody's terminal: TIOCSTI, TIOCLINUX,
/// TIOCSETD, TIOCCONS.
const TERMINAL_REQUESTS: &[u32] = &[0x5412, 0x541c, 0x5423, 0x541d];

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const SOCK_STREAM: u32 = 1;
const IPPROTO_TCP: u32 = 6;
const MSG_FASTOPEN: u32 = 0x2000_0000;
/// The type without SOCK_NONBLOCK and SOCK_CLOEXEC.
const SOCK_TYPE: u32 = 0xf;

/// `personality` may only be asked (0xffffffff) or set to plain Linux, also without address
/// randomisation, which debuggers and sanitizers want.
const PERSONALITIES: &[u32] = &[0, 0xffff_ffff, 0x0004_0000];

/// `open` for anything but plain reading: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC.
const WRITING: u32 = 0o1 | 0o2 | 0o100 | 0o1000;

/// A file with this bit runs as its owner, whoever starts it: left in the workspace, it would lend
/// the user's rights to everybody on the machine.
const SET_USER_ID: u32 = 0o4000;

/// `open` that makes a file and so takes a mode: O_CREAT, O_TMPFILE.
const MAKING: u32 = 0o100 | 0o20_000_000;

/// Calls that give a file a mode, and where it stands in their arguments.
const MODES: &[(Call, u32)] = &[
    (call!(x86_64 chmod), 1),
    (call!(fchmod), 1),
    (call!(fchmodat), 2),
    (call!(fchmodat2), 2),
    (call!(x86_64 creat), 1),
    (call!(x86_64 mknod), 1),
    (call!(mknodat), 2),
];

/// The filter as the kernel takes it.
pub(crate) fn filter(arch: Arch, sockets: Sockets, memory: Memory) -> Vec<Instruction> {
    let mut program = Program::new(arch.audit(), arch.foreign());
    let refuse = Verdict::Errno(libc::EPERM);

    let mut on_argument = |call: Call, argument, test, verdict| {
        if let Some(number) = call.number(arch) {
            program.on_argument(number, argument, test, verdict);
        }
    };
    on_argument(call!(clone), 0, Test::AnyBit(NEW_NAMESPACES), refuse);
    on_argument(call!(ioctl), 1, Test::OneOf(TERMINAL_REQUESTS), refuse);
    on_argument(call!(personality), 0, Test::NoneOf(PERSONALITIES), refuse);
    match sockets {
        Sockets::Held => {
            let families: &[u32] = &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK];
            on_argument(call!(socket), 0, Test::NoneOf(families), refuse);
        }
        Sockets::PairsOnly => {
            on_argument(call!(socket), 0, Test::NoneOf(&[]), refuse);
        }
        Sockets::PairsAndServers => {
            // ZeroMQ, which kernels talk over, looks for the machine's interfaces and ends its
            // process where that fails in another way than this.
            let no_interfaces = Verdict::Errno(libc::EOPNOTSUPP);
            on_argument(call!(socket), 0, Test::OneOf(&[AF_NETLINK]), no_interfaces);
            on_argument(call!(socket), 0, Test::NoneOf(&[AF_UNIX]), refuse);
            // Of these, what is sent goes nowhere but to who is connected.
            let stream = Test::MaskedNoneOf(SOCK_TYPE, &[SOCK_STREAM]);
            on_argument(call!(socket), 1, stream, refuse);
            on_argument(call!(connect), 0, Test::NoneOf(&[]), refuse);
        }
        Sockets::PairsAndTcp => {
            on_argument(call!(socket), 0, Test::NoneOf(&[AF_INET, AF_INET6]), refuse);
            let stream = Test::MaskedNoneOf(SOCK_TYPE, &[SOCK_STREAM]);
            on_argument(call!(socket), 1, stream, refuse);
            // Landlock sees plain TCP that connects, and neither multipath nor data that opens a
            // connection by itself.
            on_argument(call!(socket), 2, Test::NoneOf(&[0, IPPROTO_TCP]), refuse);
            for (call, flags) in [
                (call!(sendto), 3),
                (call!(sendmsg), 2),
                (call!(sendmmsg), 3),
            ] {
                on_argument(call, flags, Test::AnyBit(MSG_FASTOPEN), refuse);
            }
        }
    }
    on_argument(call!(socketpair), 0, Test::NoneOf(&[AF_UNIX]), refuse);
    for (call, mode) in MODES {
        on_argument(*call, *mode, Test::AnyBit(SET_USER_ID), refuse);
    }
    for (call, flags) in [(call!(openat), 2), (call!(x86_64 open), 1)] {
        if let Some(number) = call.number(arch) {
            let (making, mode) = ((flags, MAKING), (flags + 1, SET_USER_ID));
            program.on_bits(number, making, mode, refuse);
        }
    }
    let mut on_argument = |call: Call, argument, test, verdict| {
        if let Some(number) = call.number(arch) {
            program.on_argument(number, argument, test, verdict);
        }
    };
    // The supervisor is told of these, and lets them go on to the kernel's own decision.
    on_argument(call!(openat), 2, Test::AnyBit(WRITING), Verdict::Notify);
    on_argument(
        call!(x86_64 open),
        1,
        Test::AnyBit(WRITING),
        Verdict::Notify,
    );
    on_argument(call!(sendto), 4, Test::NotZero, Verdict::Notify);
    for (call, _) in super::notify::TOLD {
        if let Some(number) = call.number(arch) {
            program.on(number, Verdict::Notify);
        }
    }
    let absent = |call: Call, program: &mut Program| {
        if let Some(number) = call.number(arch) {
            program.on(number, Verdict::Errno(libc::ENOSYS));
        }
    };
    absent(call!(clone3), &mut program);
    absent(call!(openat2), &mut program);
    if memory == Memory::Watched {
        absent(call!(memfd_create), &mut program);
        absent(call!(memfd_secret), &mut program);
    }
    for call in CLOSED {
        if let Some(number) = call.number(arch) {
            program.on(number, refuse);
        }
    }
    program.finish()
}

#[cfg(test)]
mod tests {
    use super::super::bpf::{run, steps};
    use super::*;

    const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    fn verdict(arch: Arch, sockets: Sockets, call: Call, arguments: [u64; 6]) -> Verdict {
        let number = call.number(arch).expect("a system call of this machine");
        run(
            &filter(arch, sockets, Memory::Watched),
            arch.audit(),
            number,
            arguments,
        )
    }

    #[test]
    fn the_filter_fits_the_kernel_on_both_machines() {
        for arch in BOTH {
            let length = filter(arch, Sockets::PairsAndTcp, Memory::Watched).len();
            assert!(length < 350, "{length} instructions for {arch:?}");
        }
    }

    #[test]
    fn what_is_closed_is_refused_on_both_machines() {
        for arch in BOTH {
            for call in [
                call!(ptrace),
                call!(mount),
                call!(io_uring_setup),
                call!(bpf),
                call!(unshare),
            ] {
                let got = verdict(arch, Sockets::Held, call, [0; 6]);
                assert_eq!(got, Verdict::Errno(libc::EPERM), "{call:?} on {arch:?}");
            }
            assert_eq!(
                verdict(arch, Sockets::Held, call!(clone3), [0; 6]),
                Verdict::Errno(libc::ENOSYS)
            );
        }
    }

    #[test]
    fn every_number_meets_what_its_own_call_is_to_meet_and_no_neighbours() {
        let mut tested = vec![
            call!(clone),
            call!(ioctl),
            call!(personality),
            call!(socket),
            call!(socketpair),
            call!(openat),
            call!(x86_64 open),
            call!(sendto),
        ];
        tested.extend(MODES.iter().map(|(call, _)| *call));
        let absent = [
            call!(clone3),
            call!(openat2),
            call!(memfd_create),
            call!(memfd_secret),
        ];
        for arch in BOTH {
            let program = filter(arch, Sockets::Held, Memory::Watched);
            let has = |calls: &[Call], number| calls.iter().any(|c| c.number(arch) == Some(number));
            let told: Vec<Call> = super::super::notify::TOLD.iter().map(|t| t.0).collect();
            for number in (0..1000).filter(|number| !has(&tested, *number)) {
                let expected = match number {
                    number if has(&told, number) => Verdict::Notify,
                    number if has(&absent, number) => Verdict::Errno(libc::ENOSYS),
                    number if has(CLOSED, number) => Verdict::Errno(libc::EPERM),
                    _ => Verdict::Allow,
                };
                let got = run(&program, arch.audit(), number, [u64::MAX; 6]);
                assert_eq!(got, expected, "{number} on {arch:?}");
            }
        }
    }

    #[test]
    fn the_kernel_has_little_to_run_for_each_number() {
        for arch in BOTH {
            let program = filter(arch, Sockets::PairsAndTcp, Memory::Watched);
            let most = (0..600)
                .map(|number| steps(&program, arch.audit(), number))
                .max();
            assert!(most < Some(40), "{most:?} instructions for {arch:?}");
        }
    }

    #[test]
    fn plain_reading_is_not_told_and_writing_is() {
        for arch in BOTH {
            let open = |flags| verdict(arch, Sockets::Held, call!(openat), [0, 0, flags, 0, 0, 0]);
            assert_eq!(open(0), Verdict::Allow);
            assert_eq!(open(0o2_000_000), Verdict::Allow);
            for flags in [0o1, 0o2, 0o101, 0o1000] {
                assert_eq!(open(flags), Verdict::Notify, "{flags:o} on {arch:?}");
            }
        }
    }

    #[test]
    fn no_file_gets_a_mode_that_runs_it_as_its_owner() {
        let refused = Verdict::Errno(libc::EPERM);
        for arch in BOTH {
            for (call, mode) in MODES.iter().filter(|(call, _)| call.number(arch).is_some()) {
                let with = |bits| {
                    let mut arguments = [0; 6];
                    arguments[*mode as usize] = bits;
                    verdict(arch, Sockets::Held, *call, arguments)
                };
                assert_eq!(with(0o4755), refused, "{call:?} on {arch:?}");
                // Folders hand their group on, and what was made in /tmp is its maker's.
                for bits in [0o755, 0o2775, 0o1777] {
                    assert_ne!(with(bits), refused, "{call:?} on {arch:?}");
                }
            }
            let open = |flags, mode| {
                let arguments = [0, 0, flags, mode, 0, 0];
                verdict(arch, Sockets::Held, call!(openat), arguments)
            };
            assert_eq!(open(0o101, 0o4755), refused);
            assert_eq!(open(0o20_200_002, 0o4755), refused);
            assert_eq!(open(0o101, 0o755), Verdict::Notify);
            // Without a file to make, whatever stands where the mode would be means nothing.
            assert_eq!(open(0, 0o4755), Verdict::Allow);
        }
    }

    #[test]
    fn a_clone_for_a_thread_passes_and_one_for_a_namespace_does_not() {
        for arch in BOTH {
            let clone = |flags| verdict(arch, Sockets::Held, call!(clone), [flags, 0, 0, 0, 0, 0]);
            assert_eq!(clone(0x003d_0f00), Verdict::Allow);
            for bit in [0x80, 0x2_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
                assert_eq!(clone(bit | 17), Verdict::Errno(libc::EPERM), "{bit:#x}");
            }
        }
    }

    #[test]
    fn sockets_are_held_to_what_can_be_confined() {
        let refused = Verdict::Errno(libc::EPERM);
        for arch in BOTH {
            let socket = |sockets, family, kind| {
                verdict(arch, sockets, call!(socket), [family, kind, 0, 0, 0, 0])
            };
            for family in [1, 2, 10, 16] {
                assert_eq!(socket(Sockets::Held, family, 1), Verdict::Allow);
                assert_eq!(socket(Sockets::PairsOnly, family, 1), refused);
            }
            for family in [17, 40, 38, 21] {
                assert_eq!(socket(Sockets::Held, family, 1), refused);
            }
            let tcp = Sockets::PairsAndTcp;
            assert_eq!(socket(tcp, 2, 1 | 0o2_004_000), Verdict::Allow);
            assert_eq!(socket(tcp, 2, 2), refused);
            assert_eq!(socket(tcp, 1, 1), refused);
            let servers = Sockets::PairsAndServers;
            assert_eq!(socket(servers, 1, 1 | 0o2_004_000), Verdict::Allow);
            for (family, kind) in [(1, 2), (1, 5), (2, 1), (10, 1), (17, 3)] {
                assert_eq!(socket(servers, family, kind), refused);
            }
            let connect = |sockets| verdict(arch, sockets, call!(connect), [3, 0, 16, 0, 0, 0]);
            assert_eq!(connect(servers), refused);
            assert_eq!(connect(tcp), Verdict::Notify);
            let multipath = [2, 1, 262, 0, 0, 0];
            assert_eq!(verdict(arch, tcp, call!(socket), multipath), refused);
            let opening = [0, 0, 0, 0x2000_0000, 0, 0];
            assert_eq!(verdict(arch, tcp, call!(sendto), opening), refused);
        }
    }

    #[test]
    fn another_machines_calls_end_the_process_and_x32_does_not_exist() {
        let program = filter(Arch::X86_64, Sockets::Held, Memory::Grouped);
        assert_eq!(run(&program, 0x4000_0003, 11, [0; 6]), Verdict::Kill);
        let x32 = run(&program, Arch::X86_64.audit(), 0x4000_0000 | 59, [0; 6]);
        assert_eq!(x32, Verdict::Errno(libc::ENOSYS));
    }

    #[test]
    fn terminal_requests_that_type_for_somebody_are_refused() {
        for arch in BOTH {
            let ioctl =
                |request| verdict(arch, Sockets::Held, call!(ioctl), [0, request, 0, 0, 0, 0]);
            assert_eq!(ioctl(0x5412), Verdict::Errno(libc::EPERM));
            // The kernel looks at the low half only; so does the filter.
            assert_eq!(ioctl(0x1_0000_5412), Verdict::Errno(libc::EPERM));
            assert_eq!(ioctl(0x5413), Verdict::Allow);
        }
    }
}
