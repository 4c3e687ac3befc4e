// What processes of one machine share by a number or a name.

#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <unistd.h>

#include "attack.h"

struct message {
    long kind;
    char text[256];
};

static key_t key(char **arguments) { return (key_t)strtoul(arguments[0], 0, 10); }

// keep-segment KEY SECRET: keeps it in shared memory until let go
static void keep_segment(char **arguments) {
    int segment = shmget(key(arguments), 4096, IPC_CREAT | 0600);
    char *at = shmat(segment, NULL, 0);
    if (at == (void *)-1) _exit(1);
    strcpy(at, arguments[1]);
    tried();
    shmctl(segment, IPC_RMID, NULL);
}

// read-segment KEY
static void read_segment(char **arguments) {
    char *at = shmat(shmget(key(arguments), 0, 0), NULL, SHM_RDONLY);
    if (at != (void *)-1) loot(at, strlen(at));
}

// keep-queue KEY SECRET
static void keep_queue(char **arguments) {
    int queue = msgget(key(arguments), IPC_CREAT | 0600);
    struct message m = {.kind = 1};
    strcpy(m.text, arguments[1]);
    if (msgsnd(queue, &m, sizeof m.text, 0) != 0) _exit(1);
    tried();
    msgctl(queue, IPC_RMID, NULL);
}

// read-queue KEY
static void read_queue(char **arguments) {
    struct message m;
    if (msgrcv(msgget(key(arguments), 0), &m, sizeof m.text, 0, IPC_NOWAIT) > 0) loot(m.text, strlen(m.text));
}

// keep-posix NAME SECRET
static void keep_posix(char **arguments) {
    struct mq_attr shape = {.mq_maxmsg = 1, .mq_msgsize = 256};
    mqd_t queue = mq_open(arguments[0], O_RDWR | O_CREAT, 0600, &shape);
    if (queue < 0 || mq_send(queue, arguments[1], strlen(arguments[1]), 0) != 0) _exit(1);
    tried();
    mq_unlink(arguments[0]);
}

// read-posix NAME
static void read_posix(char **arguments) {
    char text[256];
    mqd_t queue = mq_open(arguments[0], O_RDONLY | O_NONBLOCK);
    ssize_t got = mq_receive(queue, text, sizeof text, NULL);
    if (got > 0) loot(text, (size_t)got);
}

const struct attempt SHARED[] = {
    {"keep-segment", keep_segment}, {"read-segment", read_segment}, {"keep-queue", keep_queue},
    {"read-queue", read_queue}, {"keep-posix", keep_posix}, {"read-posix", read_posix}, {NULL, NULL},
};
