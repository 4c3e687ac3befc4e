// Ways to a listener outside.

#include <arpa/inet.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "attack.h"

static const char WORD[] = "escaped";

static struct sockaddr_in address(char **arguments) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
    inet_pton(AF_INET, arguments[0], &a.sin_addr);
    return a;
}

static int impatient(int s) {
    struct timeval wait = {.tv_sec = 2};
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return s;
}

static void connect_and_say(int protocol, char **arguments) {
    struct sockaddr_in a = address(arguments);
    int s = impatient(socket(AF_INET, SOCK_STREAM, protocol));
    if (connect(s, (void *)&a, sizeof a) == 0) send(s, WORD, sizeof WORD, MSG_NOSIGNAL);
}

// tcp ADDRESS PORT
static void tcp(char **arguments) { connect_and_say(0, arguments); }

// mptcp ADDRESS PORT: the same under another protocol's number
static void mptcp(char **arguments) { connect_and_say(262, arguments); }

// fastopen ADDRESS PORT: a connection that no call to `connect` makes
static void fastopen(char **arguments) {
    struct sockaddr_in a = address(arguments);
    int s = impatient(socket(AF_INET, SOCK_STREAM, 0));
    sendto(s, WORD, sizeof WORD, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&a, sizeof a);
}

// udp ADDRESS PORT
static void udp(char **arguments) {
    struct sockaddr_in a = address(arguments);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    sendto(s, WORD, sizeof WORD, 0, (void *)&a, sizeof a);
}

// dns ADDRESS PORT: a question for `escaped.example`
static void dns(char **arguments) {
    static const char question[] =
        "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07" "escaped\x07" "example\x00\x00\x01\x00\x01";
    struct sockaddr_in a = address(arguments);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct iovec part = {(void *)question, sizeof question - 1};
    struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1};
    sendmsg(s, &message, 0);
}

static void say_to(struct sockaddr_un *a, size_t length) {
    int s = impatient(socket(AF_UNIX, SOCK_STREAM, 0));
    if (connect(s, (void *)a, (socklen_t)length) == 0) send(s, WORD, sizeof WORD, MSG_NOSIGNAL);
    close(s);
}

// unix PATH
static void unix_path(char **arguments) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", arguments[0]);
    say_to(&a, sizeof a);
}

// abstract NAME
static void abstract(char **arguments) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t length = strlen(arguments[0]);
    memcpy(a.sun_path + 1, arguments[0], length);
    say_to(&a, offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

// family NUMBER TYPE: any socket of the family, kept open
static void family(char **arguments) { socket(atoi(arguments[0]), atoi(arguments[1]), 0); }

// interfaces: what netlink says there is
static void interfaces(char **arguments) {
    (void)arguments;
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *i = all; i && i->if_name; i++) {
        loot(i->if_name, strlen(i->if_name));
        loot("\n", 1);
    }
}

// proxy HOST PORT: asks the proxy that the environment names
static void proxy(char **arguments) {
    const char *where = getenv("http_proxy");
    const char *port = where ? strrchr(where, ':') : NULL;
    if (!port) return;
    struct sockaddr_in a = address((char *[]){"127.0.0.1", (char *)port + 1});
    int s = impatient(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(s, (void *)&a, sizeof a) != 0) return;
    char text[512];
    int length = snprintf(text, sizeof text, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", arguments[0],
                          arguments[1], arguments[0], arguments[1]);
    send(s, text, (size_t)length, MSG_NOSIGNAL);
    if (recv(s, text, sizeof text, 0) <= 0) return;
    send(s, WORD, sizeof WORD, MSG_NOSIGNAL);
    // Until it has arrived: what is under way when a command ends ends with it.
    ssize_t answered = recv(s, text, sizeof text, 0);
    (void)answered;
}

// loopback: no attack; a server and its client in one room
static void loopback(char **arguments) {
    (void)arguments;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof a;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&a, length) != 0 || listen(server, 1) != 0) return;
    getsockname(server, (void *)&a, &length);
    if (connect(client, (void *)&a, length) != 0) return;
    send(client, "arrived", 7, 0);
    close(client);
    loot_from(accept(server, NULL, NULL));
}

const struct attempt NETWORK[] = {
    {"tcp", tcp},       {"mptcp", mptcp},       {"fastopen", fastopen}, {"udp", udp},
    {"dns", dns},       {"unix", unix_path},    {"abstract", abstract}, {"family", family},
    {"proxy", proxy},   {"interfaces", interfaces}, {"loopback", loopback}, {NULL, NULL},
};
