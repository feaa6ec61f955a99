/* Two programs for floods, which Python would be too slow for.
 *
 * flood serve KEY: an HTTPDNS service (aes) on 127.0.0.3, whose port it prints, that knows two addresses of every name.
 * flood ask PORT COUNT WINDOW SUFFIX SEED KNOWN: asks the daemon for COUNT random names under SUFFIX as fast as answers come,
 * WINDOW of them under way; who has no answer while nothing comes is not waited for. With each BATCH of them go OFTEN questions
 * for known0.SUFFIX to known(KNOWN - 1).SUFFIX in turn: however slowly others are scheduled, these are asked for all the time.
 * It prints how many answers for random names came, and how many of them with an address. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 64, OFTEN = 4, IS_KNOWN = 0xffff, LONGEST = 300, MOST = 1024, ROOM = 8192 };

/* --- The service --- */

static EVP_CIPHER_CTX *cipher;
static unsigned char key[17];
static struct { char bytes[ROOM]; size_t length; } connections[MOST];

static int hex(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

/* The lines about the names in `text`, comma-separated. */
static int lines(char *names, char *out) {
    int length = 0;
    for (char *name = strtok(names, ","); name; name = strtok(0, ",")) {
        unsigned hash = 5381;
        for (char *at = name; *at; at++) hash = hash * 33 + (unsigned char)*at;
        length += sprintf(out + length, "%s%s.:198.18.%u.%u,600-2001:db8:18::%x,600|203.0.113.7", length ? "\n" : "",
                          name, hash >> 8 & 255, hash & 255, hash & 65535);
    }
    return length;
}

/* Answers the request whose hexadecimal names begin at `dn`. */
static void answer(int connection, const char *dn) {
    unsigned char sealed[ROOM / 2], text[ROOM], body[2 * ROOM];
    char said[ROOM];
    int length = 0, part, rest;
    while (dn[2 * length] != '&' && dn[2 * length] != ' ')
        sealed[length] = hex(dn[2 * length]) << 4 | hex(dn[2 * length + 1]), length++;
    EVP_DecryptInit_ex(cipher, EVP_aes_128_cbc(), 0, key, sealed);
    EVP_DecryptUpdate(cipher, text, &part, sealed + 16, length - 16);
    if (EVP_DecryptFinal_ex(cipher, text + part, &rest) != 1) exit(65);
    text[part + rest] = 0;
    length = lines((char *)text, said);
    RAND_bytes(body, 16);
    EVP_EncryptInit_ex(cipher, EVP_aes_128_cbc(), 0, key, body);
    EVP_EncryptUpdate(cipher, body + 16, &part, (unsigned char *)said, length);
    EVP_EncryptFinal_ex(cipher, body + 16 + part, &rest);
    length = 16 + part + rest;
    char reply[2 * ROOM];
    int end = sprintf(reply, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 2 * length);
    for (int i = 0; i < length; i++) end += sprintf(reply + end, "%02x", body[i]);
    if (send(connection, reply, end, MSG_NOSIGNAL) != end) exit(74);
}

static int serve(const char *secret) {
    memcpy(key, secret, 16);
    cipher = EVP_CIPHER_CTX_new();
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t size = sizeof own;
    inet_pton(AF_INET, "127.0.0.3", &own.sin_addr);
    if (bind(listener, (struct sockaddr *)&own, size) || listen(listener, 512)) return 71;
    getsockname(listener, (struct sockaddr *)&own, &size);
    printf("%u\n", ntohs(own.sin_port));
    fflush(stdout);
    int queue = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[BATCH];
    epoll_ctl(queue, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(queue, events, BATCH, -1);
        for (int i = 0; i < count; i++) {
            int connection = events[i].data.fd;
            if (connection == listener) {
                if ((connection = accept4(listener, 0, 0, SOCK_CLOEXEC)) < 0) continue;
                if (connection >= MOST) return 71;
                setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                connections[connection].length = 0;
                event.data.fd = connection;
                epoll_ctl(queue, EPOLL_CTL_ADD, connection, &event);
                continue;
            }
            char *bytes = connections[connection].bytes;
            size_t *length = &connections[connection].length;
            ssize_t got = recv(connection, bytes + *length, ROOM - 1 - *length, 0);
            if (got <= 0) {
                close(connection);
                continue;
            }
            bytes[*length += got] = 0;
            if (!strstr(bytes, "\r\n\r\n")) continue; /* one request at a time: nothing comes behind it */
            *length = 0;
            char *dn = strstr(bytes, "dn=");
            if (!dn) return 65;
            answer(connection, dn + 3);
        }
    }
}

/* --- The flood --- */

static uint64_t state;

static uint64_t chance(void) {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static size_t question(uint8_t *to, unsigned id, unsigned known, const char *suffix) {
    static const uint8_t flags[10] = {1, 0, 0, 1}, type[5] = {0, 0, 1, 0, 1};
    uint8_t *at = to;
    *at++ = id >> 8, *at++ = id;
    memcpy(at, flags, 10), at += 10;
    if (id == IS_KNOWN) {
        *at = sprintf((char *)at + 1, "known%u", known), at += *at + 1;
    } else {
        *at++ = 16;
        uint64_t letters = chance();
        for (int i = 0; i < 16; i++) *at++ = 'a' + (letters >> 4 * i & 15);
    }
    char name[LONGEST - 64];
    snprintf(name, sizeof name, "%s", suffix);
    for (char *label = strtok(name, "."); label; label = strtok(0, ".")) {
        *at++ = strlen(label);
        memcpy(at, label, strlen(label)), at += strlen(label);
    }
    memcpy(at, type, 5);
    return at + 5 - to;
}

static int ask(unsigned port, unsigned long count, long window, const char *suffix, unsigned known) {
    int channel = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = 1 << 22;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &server.sin_addr);
    setsockopt(channel, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (connect(channel, (struct sockaddr *)&server, sizeof server)) return 71;
    static uint8_t bytes[BATCH][LONGEST];
    struct iovec vector[BATCH];
    struct mmsghdr message[BATCH];
    unsigned long sent = 0, answers = 0, good = 0, batches = 0;
    long waiting = 0;
    while (sent < count || waiting > 0) {
        for (int i = 0; i < BATCH; i++) {
            vector[i] = (struct iovec){bytes[i], LONGEST};
            message[i].msg_hdr = (struct msghdr){.msg_iov = &vector[i], .msg_iovlen = 1};
        }
        struct pollfd ready = {.fd = channel, .events = POLLIN};
        /* Full: waits for answers. Those that take longer than a moment are not waited for. */
        if (sent == count || waiting + BATCH > window) {
            if (poll(&ready, 1, 20) == 0) waiting = 0;
        }
        int got = recvmmsg(channel, message, BATCH, MSG_DONTWAIT, 0);
        long random = 0;
        for (int i = 0; i < got; i++) {
            if (bytes[i][0] == IS_KNOWN >> 8 && bytes[i][1] == (IS_KNOWN & 255)) continue;
            random++, good += (bytes[i][3] & 15) == 0 && (bytes[i][6] | bytes[i][7]);
        }
        answers += random;
        waiting = random > waiting ? 0 : waiting - random;
        if (sent == count || waiting + BATCH > window) continue;
        int size = count - sent < BATCH ? count - sent : BATCH;
        for (int i = 0; i < OFTEN; i++) {
            size_t length = question(bytes[0], IS_KNOWN, (batches * OFTEN + i) % known, suffix);
            if (send(channel, bytes[0], length, 0) < 0) return 71;
        }
        batches++;
        for (int i = 0; i < size; i++) vector[i].iov_len = question(bytes[i], (sent + i) % IS_KNOWN, 0, suffix);
        for (int i = 0; i < size; i++) message[i].msg_hdr = (struct msghdr){.msg_iov = &vector[i], .msg_iovlen = 1};
        int done = sendmmsg(channel, message, size, 0);
        if (done < 0) return 71;
        sent += done, waiting += done;
    }
    printf("%lu %lu\n", answers, good);
    return 0;
}

int main(int count, char **argument) {
    if (count == 3 && !strcmp(argument[1], "serve") && strlen(argument[2]) == 16) return serve(argument[2]);
    if (count != 8 || strcmp(argument[1], "ask")) return 64;
    state = strtoull(argument[6], 0, 10);
    return ask(atoi(argument[2]), strtoul(argument[3], 0, 10), atol(argument[4]), argument[5], atoi(argument[7]));
}
