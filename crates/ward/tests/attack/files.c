// Files that a shell cannot name, and descriptors that came along.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attack.h"

// descriptor NUMBER: reads what was left open
static void descriptor(char **arguments) { loot_from(atoi(arguments[0])); }

// below NUMBER NAME: a file below a folder that was left open, by name and by working directory
static void below(char **arguments) {
    int folder = atoi(arguments[0]);
    loot_from(openat(folder, arguments[1], O_RDONLY));
    int here = open(".", O_RDONLY | O_DIRECTORY);
    int file = fchdir(folder) == 0 ? open(arguments[1], O_RDONLY) : -1;
    if (fchdir(here) == 0) loot_from(file);
}

// write-to PATH TEXT: without making it
static void write_to(char **arguments) {
    int file = open(arguments[0], O_WRONLY);
    ssize_t written = write(file, arguments[1], strlen(arguments[1]));
    (void)written;
}

// device PATH TYPE MAJOR MINOR: makes a device and opens it
static void device(char **arguments) {
    mode_t kind = arguments[1][0] == 'b' ? S_IFBLK : S_IFCHR;
    mknod(arguments[0], kind | 0666, makedev((unsigned)atoi(arguments[2]), (unsigned)atoi(arguments[3])));
    open(arguments[0], O_RDONLY);
}

// whoami: a file whose owner tells who this is
static void whoami(char **arguments) {
    (void)arguments;
    loot("x", 1);
}

// become UID: every way to be somebody else
static void become(char **arguments) {
    uid_t uid = (uid_t)atoi(arguments[0]);
    if (setresuid(uid, uid, uid) != 0 && setuid(uid) != 0 && seteuid(uid) != 0) return;
    loot("x", 1);
}

// set-user-id NAME: every way to a file that runs as its owner; each leaves one, where it works
static void set_user_id(char **arguments) {
    char name[256];
    const mode_t mode = S_ISUID | 0755;
    const int making = O_WRONLY | O_CREAT | O_EXCL;
#define NAMED(way) (snprintf(name, sizeof name, "%s-" way, arguments[0]), name)
    close(open(NAMED("chmod"), making, 0755));
    chmod(name, mode);
    int file = open(NAMED("fchmod"), making, 0755);
    fchmod(file, mode);
    close(file);
    close(open(NAMED("fchmodat"), making, 0755));
    fchmodat(AT_FDCWD, name, mode, 0);
    close(open(NAMED("fchmodat2"), making, 0755));
    syscall(452, AT_FDCWD, name, mode, 0);
    close(openat(AT_FDCWD, NAMED("openat"), making, mode));
    struct { unsigned long long flags, mode, resolve; } how = {(unsigned)making, mode, 0};
    close((int)syscall(437, AT_FDCWD, NAMED("openat2"), &how, sizeof how));
    mknod(NAMED("mknod"), S_IFREG | mode, 0);
    int unnamed = open(".", O_WRONLY | O_TMPFILE, mode);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", unnamed);
    linkat(AT_FDCWD, link, AT_FDCWD, NAMED("unnamed"), AT_SYMLINK_FOLLOW);
    close(unnamed);
#ifdef SYS_open
    close((int)syscall(SYS_open, NAMED("open"), making, mode));
    close((int)syscall(SYS_creat, NAMED("creat"), mode));
#endif
}

const struct attempt FILES[] = {
    {"descriptor", descriptor}, {"below", below}, {"write-to", write_to}, {"device", device},
    {"whoami", whoami}, {"become", become}, {"set-user-id", set_user_id},
    {NULL, NULL},
};
