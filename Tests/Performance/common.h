// What the programs of the bench share: time, options, sockets, and the few DNS bytes they need.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 12, TYPE_A = 1, TYPE_AAAA = 28, BATCH = 64, SOCKET_BUFFER = 4 << 20 };

static inline void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "no");
    exit(1);
}

static inline uint64_t nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// The value after `name` in the arguments, or `otherwise`.
static inline const char *option(char **arguments, const char *name, const char *otherwise) {
    for (char **one = arguments + 1; *one; one++)
        if (strcmp(*one, name) == 0 && one[1]) return one[1];
    return otherwise;
}

static inline bool flag(char **arguments, const char *name) {
    for (char **one = arguments + 1; *one; one++)
        if (strcmp(*one, name) == 0) return true;
    return false;
}

// Reads ADDRESS:PORT, IPv4 as all of the bench.
static inline struct sockaddr_in endpoint(const char *text) {
    char address[INET_ADDRSTRLEN] = "";
    struct sockaddr_in result = {.sin_family = AF_INET};
    const char *colon = text ? strrchr(text, ':') : NULL;
    errno = 0;
    require(colon && (size_t)(colon - text) < sizeof address, "ADDRESS:PORT is missing");
    memcpy(address, text, (size_t)(colon - text));
    require(inet_pton(AF_INET, address, &result.sin_addr) == 1, "not an IPv4 address");
    result.sin_port = htons((uint16_t)atoi(colon + 1));
    return result;
}

static inline void set(int socket, int level, int name, int value) {
    require(setsockopt(socket, level, name, &value, sizeof value) == 0, "setsockopt");
}

static inline int listening(int type, struct sockaddr_in address) {
    int result = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    require(result >= 0, "socket");
    set(result, SOL_SOCKET, SO_REUSEADDR, 1);
    set(result, SOL_SOCKET, SO_REUSEPORT, 1);
    if (type == SOCK_DGRAM) set(result, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    require(bind(result, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    if (type & SOCK_STREAM) require(listen(result, 1024) == 0, "listen");
    return result;
}

// Where the question after the header ends; 0 if it does not.
static inline size_t question_end(const uint8_t *message, size_t length) {
    size_t position = HEADER;
    while (position < length && message[position]) position += 1 + (size_t)message[position];
    position += 5;
    return position <= length ? position : 0;
}
