// Takes more than its share. Every amount is bounded by an argument.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"

static const size_t MEGABYTE = 1 << 20;

static void take(long megabytes) {
    for (long i = 0; i < megabytes; i++) {
        char *part = malloc(MEGABYTE);
        if (!part) return;
        memset(part, 1, MEGABYTE);
    }
}

static void fill(int file, long megabytes) {
    static char part[1 << 20];
    memset(part, 1, sizeof part);
    for (long i = 0; i < megabytes; i++)
        if (write(file, part, sizeof part) < 0) return;
}

// memory MEGABYTES: in this process
static void memory(char **arguments) { take(atol(arguments[0])); }

// memory-tree PROCESSES MEGABYTES: in each of them
static void memory_tree(char **arguments) {
    int ready[2], gate[2];
    if (pipe(ready) != 0 || pipe(gate) != 0) return;
    for (int i = 0; i < atoi(arguments[0]); i++)
        if (fork() == 0) {
            char byte;
            close(gate[1]), close(ready[0]);
            take(atol(arguments[1]));
            close(ready[1]);
            ssize_t end = read(gate[0], &byte, 1);
            _exit((int)end);
        }
    char byte;
    close(ready[1]);
    while (read(ready[0], &byte, 1) > 0) continue;
    tried();
    close(gate[1]);
    while (wait(NULL) > 0) continue;
}

// memory-hidden MEGABYTES: in a file without a name, which no process has mapped
static void memory_hidden(char **arguments) { fill(memfd_create("hidden", 0), atol(arguments[0])); }

// memory-let-go MEGABYTES: shared with nobody, and let go of page by page; it stays all the same
static void memory_let_go(char **arguments) {
    size_t all = (size_t)atol(arguments[0]) * MEGABYTE;
    char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    for (size_t i = 0; i < all; i += MEGABYTE) {
        memset(at + i, 1, MEGABYTE);
        madvise(at + i, MEGABYTE, MADV_DONTNEED);
    }
}

// fill PATH MEGABYTES
static void fill_file(char **arguments) {
    fill(open(arguments[0], O_WRONLY | O_CREAT, 0666), atol(arguments[1]));
}

// flood: output without end
static void flood(char **arguments) {
    (void)arguments;
    static char part[1 << 16];
    memset(part, 'y', sizeof part);
    while (write(1, part, sizeof part) > 0) continue;
    _exit(0);
}

const struct attempt MEMORY[] = {
    {"memory", memory}, {"memory-tree", memory_tree}, {"memory-hidden", memory_hidden},
    {"memory-let-go", memory_let_go},
    {"fill", fill_file}, {"flood", flood}, {NULL, NULL},
};
