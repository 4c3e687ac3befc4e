//! The system calls that no safe crate offers. Each `unsafe` block names what keeps it sound.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::bpf::Instruction;

/// Namespaces, as `clone` and `unshare` name them.
pub(crate) mod new {
    pub(crate) const MOUNT: u64 = 0x0002_0000;
    pub(crate) const CGROUP: u64 = 0x0200_0000;
    pub(crate) const UTS: u64 = 0x0400_0000;
    pub(crate) const IPC: u64 = 0x0800_0000;
    pub(crate) const USER: u64 = 0x1000_0000;
    pub(crate) const PID: u64 = 0x2000_0000;
    pub(crate) const NET: u64 = 0x4000_0000;
}

/// The new process is a sibling of the caller, not its child.
pub(crate) const CLONE_PARENT: u64 = 0x8000;
const CLONE_PIDFD: u64 = 0x1000;

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Side {
    Child,
    /// The child's pid, and a descriptor of it.
    Parent(i32, OwnedFd),
}

/// Forks with `clone`'s flags.
///
/// # Safety
/// The caller is single-threaded, so that the child has no lock of another thread's to wait for.
pub(crate) unsafe fn fork_with(flags: u64) -> io::Result<Side> {
    let mut pidfd: RawFd = -1;
    let flags = flags | CLONE_PIDFD | libc::SIGCHLD as u64;
    // SAFETY: no CLONE_VM, so the child works on its own copy of the memory and of the stack
    // (a null stack means "the same address"); `pidfd` outlives the call. On both machines the
    // third argument is where CLONE_PIDFD stores its descriptor.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            0_usize,
            std::ptr::from_mut(&mut pidfd),
            0_usize,
            0_usize,
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        // SAFETY: the kernel has just made this descriptor for us.
        pid => Ok(Side::Parent(pid as i32, unsafe {
            OwnedFd::from_raw_fd(pidfd)
        })),
    }
}

/// Does `work` in a child that shares this process's memory, until it executes a program or `work`
/// is over and it ends; the caller waits that long. No page is copied for what is about to be
/// replaced, and what `work` wrote is there afterwards. Its pid.
///
/// # Safety
/// The caller is single-threaded.
pub(crate) unsafe fn run_in_child(work: &mut dyn FnMut()) -> io::Result<i32> {
    extern "C" fn enter(work: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer below; its owner waits while this runs.
        let work = unsafe { &mut *work.cast::<&mut dyn FnMut()>() };
        work();
        exit_now(125)
    }
    const SIZE: usize = 512 * 1024;
    const GUARD: usize = 64 * 1024;
    let mut work = work;
    // SAFETY: new memory of its own for the child's stack, with a guard below, given back once the
    // child has its own memory or has ended: CLONE_VFORK returns no earlier. Until then only the
    // child runs, so that nothing is used by two at once.
    unsafe {
        let (read_write, private) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE,
        );
        let stack = libc::mmap(std::ptr::null_mut(), SIZE, read_write, private, -1, 0);
        if stack == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pid = if libc::mprotect(stack, GUARD, libc::PROT_NONE) == 0 {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            libc::clone(
                enter,
                stack.byte_add(SIZE),
                flags,
                std::ptr::from_mut(&mut work).cast(),
            )
        } else {
            -1
        };
        let error = io::Error::last_os_error();
        libc::munmap(stack, SIZE);
        if pid == -1 { Err(error) } else { Ok(pid) }
    }
}

/// Ends this process without running anything at exit, as a forked child must.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// What a mount forbids.
pub(crate) mod attr {
    pub(crate) const READ_ONLY: u64 = 1;
    pub(crate) const NO_SUID: u64 = 2;
    pub(crate) const NO_DEV: u64 = 4;
}

/// How far an attribute reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    This,
    Below,
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// What happens to a mount's attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Set(u64),
    Clear(u64),
}

/// Sets attributes on the mount at `path` below `dir` (an empty path means `dir` itself).
pub(crate) fn mount_setattr(
    dir: BorrowedFd<'_>,
    path: &std::ffi::CStr,
    set: u64,
    reach: Reach,
) -> io::Result<()> {
    change_mount(dir, path, Change::Set(set), reach)
}

/// Sets or clears attributes, likewise.
pub(crate) fn change_mount(
    dir: BorrowedFd<'_>,
    path: &std::ffi::CStr,
    change: Change,
    reach: Reach,
) -> io::Result<()> {
    let (set, clear) = match change {
        Change::Set(set) => (set, 0),
        Change::Clear(clear) => (0, clear),
    };
    let attributes = MountAttr {
        set,
        clear,
        propagation: 0,
        userns: 0,
    };
    let mut flags = 0;
    if path.is_empty() {
        flags |= libc::AT_EMPTY_PATH;
    }
    if reach == Reach::Below {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path ends in NUL, and the structure has the size that is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            std::ptr::from_ref(&attributes),
            size_of::<MountAttr>(),
        )
    };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Lets nothing that is executed from now on gain a capability, in this process and its children.
pub(crate) fn bound_capabilities() {
    for capability in 0..64 {
        // SAFETY: plain numbers; an unknown capability is an error that says "no such one".
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } == -1 {
            break;
        }
    }
}

/// Takes every capability away.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    let header = [0x2008_0522_u32, 0];
    let none = [0_u32; 6];
    // SAFETY: version 3 of the interface takes two words of header and six of data.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Puts up a seccomp filter; the descriptor on which a supervisor is told.
pub(crate) fn install_filter(program: &[Instruction]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Fprog {
        length: u16,
        instructions: *const Instruction,
    }
    const NEW_LISTENER: libc::c_ulong = 1 << 3;
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
    let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let length = u16::try_from(program.len()).map_err(too_long)?;
    let fprog = Fprog {
        length,
        instructions: program.as_ptr(),
    };
    let install = |flags: libc::c_ulong| {
        let (mode, program) = (libc::SECCOMP_SET_MODE_FILTER, std::ptr::from_ref(&fprog));
        // SAFETY: `fprog` points at `length` instructions that live until the call returns.
        let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, program) };
        if result == -1 {
            Err(io::Error::last_os_error())
        } else {
            Ok(result as RawFd)
        }
    };
    // WAIT_KILLABLE came with Linux 5.19; without it a signal may restart a call, nothing worse.
    let listener = install(NEW_LISTENER | WAIT_KILLABLE).or_else(|_| install(NEW_LISTENER))?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// One call that waits for the supervisor.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Notification {
    pub(crate) id: u64,
    pub(crate) pid: u32,
    flags: u32,
    pub(crate) number: i32,
    arch: u32,
    instruction_pointer: u64,
    pub(crate) arguments: [u64; 6],
}

#[derive(Debug, Default)]
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// Takes the next notification; none where the call is gone already.
pub(crate) fn notification(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    const RECEIVE: libc::c_ulong = 0xc050_2100;
    let mut notification = Notification::default();
    // SAFETY: the kernel writes one `seccomp_notif`, which is what `Notification` is laid out as;
    // it demands that the memory is zero before.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            RECEIVE as _,
            std::ptr::from_mut(&mut notification),
        )
    };
    if result == 0 {
        return Ok(Some(notification));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR | libc::EAGAIN) => Ok(None),
        _ => Err(error),
    }
}

/// Lets the call go on. The kernel decides it by its own rules: this is telling, not deciding.
pub(crate) fn let_go_on(listener: BorrowedFd<'_>, id: u64) {
    const SEND: libc::c_ulong = 0xc018_2101;
    const CONTINUE: u32 = 1;
    let mut response = Response {
        id,
        flags: CONTINUE,
        ..Response::default()
    };
    // SAFETY: the kernel reads one `seccomp_notif_resp`. It fails only where the caller has gone.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            SEND as _,
            std::ptr::from_mut(&mut response),
        )
    };
}

/// Asks the kernel to hand over between command and supervisor on one processor (Linux 6.6): a
/// seventh of the cost. Where it does not know how, nothing is lost but time.
pub(crate) fn hand_over_quickly(listener: BorrowedFd<'_>) {
    const SET_FLAGS: libc::c_ulong = 0x4008_2104;
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the argument is a number, not a pointer.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
}

/// Reads memory of another process into `buffer`, as much as is mapped.
pub(crate) fn read_memory(pid: u32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut _,
        iov_len: buffer.len(),
    };
    // SAFETY: the local vector is `buffer`; the remote address is checked by the kernel.
    let read = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            std::ptr::from_ref(&local),
            1,
            std::ptr::from_ref(&remote),
            1,
            0,
        )
    };
    if read == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(read as usize)
    }
}

/// Makes `lo` of this network namespace usable.
pub(crate) fn raise_loopback(socket: impl AsFd) -> io::Result<()> {
    const SIOCSIFFLAGS: libc::c_ulong = 0x8914;
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: i16,
        rest: [u8; 22],
    }
    let mut request = Request {
        name: [0; 16],
        flags: 0x1 | 0x40,
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    // SAFETY: the kernel reads one `ifreq`, 40 bytes.
    let result = unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            SIOCSIFFLAGS as _,
            std::ptr::from_ref(&request),
        )
    };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sets what a signal does in this process.
pub(crate) fn on_signal(signal: i32, handler: libc::sighandler_t) {
    // SAFETY: the handlers given are SIG_DFL, SIG_IGN, or a function that only makes system calls.
    unsafe {
        libc::signal(signal, handler);
    }
}

/// Lets every signal through again, whatever was blocked by who started us.
pub(crate) fn unblock_signals() {
    // SAFETY: the set is made by sigemptyset before it is read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Takes the end of any child that has ended; its pid and raw status.
pub(crate) fn ended_child() -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some((pid, status))),
    }
}

/// Marks every descriptor from `first` on to be closed by exec.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: plain numbers; with this flag nothing is closed now.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Executes a program; returns only where that failed.
pub(crate) fn exec(
    program: &std::ffi::CStr,
    arguments: &[std::ffi::CString],
    environment: &[std::ffi::CString],
) -> io::Error {
    let pointers = |strings: &[std::ffi::CString]| -> Vec<*const libc::c_char> {
        strings
            .iter()
            .map(|s| s.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both lists end in a null pointer and point at strings that outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Lets a signal interrupt a wait, and do nothing else.
pub(crate) fn interrupt_on(signal: i32) {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the action is zero but for a handler that does nothing; without SA_RESTART the call
    // that waits comes back.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as libc::sighandler_t;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Sends a signal.
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: plain numbers. That the process has gone is no failure.
    unsafe {
        libc::kill(pid, signal);
    }
}

/// Holds these signals back until [`next_signal`] takes them.
pub(crate) fn hold_signals(signals: &[i32]) {
    // SAFETY: the set is made by sigemptyset before it is read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// Waits for one of the signals that are held back.
pub(crate) fn next_signal(signals: &[i32]) -> i32 {
    // SAFETY: the set is made by sigemptyset before it is read; no details are asked for.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::sigwaitinfo(&set, std::ptr::null_mut())
    }
}

/// Waits until a child has ended; fails where there is none.
pub(crate) fn wait_for_child() -> io::Result<()> {
    loop {
        // SAFETY: no status is asked for.
        if unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } != -1 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}

/// Whether the kernel can tell a supervisor of calls.
pub(crate) fn can_notify() -> bool {
    const GET_ACTION_AVAIL: libc::c_ulong = 2;
    let notify: u32 = 0x7fc0_0000;
    // SAFETY: the kernel reads one word.
    unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            GET_ACTION_AVAIL,
            0,
            std::ptr::from_ref(&notify),
        ) == 0
    }
}
