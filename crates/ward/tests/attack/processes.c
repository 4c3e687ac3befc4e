// Ways to other processes, and ways to stay when one should have ended.

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"

// victim SECRET: holds a secret in its memory, says where, and waits to be attacked
static void victim(char **arguments) {
    char *secret = strdup(arguments[0]);
    printf("%lu %zu\n", (unsigned long)secret, strlen(secret));
}

static int open_of(char *pid, const char *name, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    return open(path, flags);
}

// proc PID NAME: a file of another process
static void proc(char **arguments) { loot_from(open_of(arguments[0], arguments[1], O_RDONLY)); }

// memory-file PID ADDRESS LENGTH
static void memory_file(char **arguments) {
    char bytes[256];
    int file = open_of(arguments[0], "mem", O_RDONLY);
    ssize_t got = pread(file, bytes, strtoul(arguments[2], 0, 10), (off_t)strtoul(arguments[1], 0, 10));
    if (got > 0) loot(bytes, (size_t)got);
}

// memory-call PID ADDRESS LENGTH
static void memory_call(char **arguments) {
    char bytes[256];
    size_t length = strtoul(arguments[2], 0, 10);
    struct iovec here = {bytes, length}, there = {(void *)strtoul(arguments[1], 0, 10), length};
    ssize_t got = process_vm_readv(atoi(arguments[0]), &here, 1, &there, 1, 0);
    if (got > 0) loot(bytes, (size_t)got);
}

// trace PID: and stays attached
static void trace(char **arguments) {
    pid_t pid = atoi(arguments[0]);
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) ptrace(PTRACE_ATTACH, pid, 0, 0);
}

// steal PID DESCRIPTOR: takes a descriptor of another process and reads it
static void steal(char **arguments) {
    int process = (int)syscall(SYS_pidfd_open, atoi(arguments[0]), 0);
    int taken = (int)syscall(SYS_pidfd_getfd, process, atoi(arguments[1]), 0);
    loot_from(taken);
}

// kill PID SIGNAL
static void kill_it(char **arguments) { kill(atoi(arguments[0]), atoi(arguments[1])); }

// kill-by-descriptor PID SIGNAL
static void kill_by_descriptor(char **arguments) {
    int process = (int)syscall(SYS_pidfd_open, atoi(arguments[0]), 0);
    syscall(SYS_pidfd_send_signal, process, atoi(arguments[1]), 0, 0);
}

// kill-init: everything that could end the first process of the room
static void kill_init(char **arguments) {
    (void)arguments;
    // Outside a room the first process is the machine's own.
    if (getpid() > 100) return;
    int signals[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGTERM, SIGUSR1, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) kill(1, signals[i]);
}

// programs NAME: opens the program that every other process runs, where its name is NAME
static void programs(char **arguments) {
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char target[512] = "", path[300];
        snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
        if (atoi(entry->d_name) == 0 || atoi(entry->d_name) == getpid()) continue;
        ssize_t got = readlink(path, target, sizeof target - 1);
        if (got > 0 && strstr(target, arguments[0])) open(path, O_RDONLY);
    }
}

// daemon SECONDS: leaves a process behind that has cut every tie
static void leave_daemon(char **arguments) {
    unsigned seconds = (unsigned)atoi(arguments[0]);
    int ready[2];
    if (pipe(ready) != 0) return;
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            setsid();
            signal(SIGHUP, SIG_IGN), signal(SIGTERM, SIG_IGN), signal(SIGINT, SIG_IGN);
            close(0), close(1), close(2), close(ready[0]), close(ready[1]);
            sleep(seconds);
        }
        _exit(0);
    }
    close(ready[1]);
    char byte;
    while (read(ready[0], &byte, 1) > 0) continue;
}

// child SECONDS: leaves a plain child behind
static void leave_child(char **arguments) {
    if (fork() == 0) {
        close(0), close(1), close(2);
        sleep((unsigned)atoi(arguments[0]));
        _exit(0);
    }
}

// forks COUNT: as many processes at once as it may, at most COUNT
static void forks(char **arguments) {
    int gate[2], most = atoi(arguments[0]);
    if (pipe(gate) != 0) return;
    for (int i = 0; i < most; i++) {
        pid_t child = fork();
        if (child < 0) break;
        if (child == 0) {
            char byte;
            close(gate[1]);
            ssize_t end = read(gate[0], &byte, 1);
            _exit((int)end);
        }
    }
    tried();
    close(gate[1]);
    while (wait(NULL) > 0) continue;
}

const struct attempt PROCESSES[] = {
    {"victim", victim},           {"proc", proc},       {"memory-file", memory_file}, {"memory-call", memory_call},
    {"trace", trace},             {"steal", steal},     {"kill", kill_it},            {"kill-by-descriptor", kill_by_descriptor},
    {"kill-init", kill_init},     {"programs", programs}, {"daemon", leave_daemon},   {"child", leave_child},
    {"forks", forks},             {NULL, NULL},
};
