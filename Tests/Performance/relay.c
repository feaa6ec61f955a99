// A TCP relay that holds back what the server sends for a given time and lets any amount through: the distance of a name server
// that speaks no delay of its own.
#include <sys/epoll.h>

#include "common.h"

enum { CHUNK = 65536 };

// One direction of a connection: its events say which side it is.
struct side {
    int socket;
    bool closed;
    struct side *other;
};

struct pair {
    struct side client, server;
    unsigned waiting;  // chunks that are not due yet
};

struct chunk {
    struct chunk *next;
    uint64_t due;
    struct pair *pair;
    size_t length;  // 0: the end
    uint8_t bytes[];
};

static struct chunk *first, **last = &first;
static uint64_t delay;
static int epoll;
static struct sockaddr_in upstream;

static struct pair *pair_of(struct side *side) {
    return (struct pair *)(side < side->other ? side : side->other);
}

static void hang_up(struct pair *pair) {
    for (struct side *side = &pair->client; side; side = side == &pair->client ? &pair->server : NULL) {
        if (!side->closed) close(side->socket);
        side->closed = true;
    }
}

static bool send_all(int socket, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static void hold_back(struct pair *pair, const uint8_t *bytes, size_t length) {
    struct chunk *chunk = malloc(sizeof *chunk + length);
    require(chunk, "memory");
    *chunk = (struct chunk){.due = nanoseconds() + delay, .pair = pair, .length = length};
    memcpy(chunk->bytes, bytes, length);
    pair->waiting++;
    *last = chunk;
    last = &chunk->next;
}

static void send_due(void) {
    uint64_t now = nanoseconds();
    while (first && first->due <= now) {
        struct chunk *chunk = first;
        struct pair *pair = chunk->pair;
        first = chunk->next;
        if (!first) last = &first;
        pair->waiting--;
        if (!pair->client.closed && (chunk->length == 0 || !send_all(pair->client.socket, chunk->bytes, chunk->length)))
            hang_up(pair);
        free(chunk);
        if (pair->client.closed && pair->waiting == 0) free(pair);
    }
}

static void serve(struct side *side) {
    static uint8_t bytes[CHUNK];
    struct pair *pair = pair_of(side);
    if (side->closed) return;
    ssize_t got = recv(side->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    // Both ends hold back a second small write until the first is acknowledged (Nagle): acknowledged at once it is.
    set(side->socket, IPPROTO_TCP, TCP_QUICKACK, 1);
    if (side == &pair->server) {
        // What ended is watched no more; the end waits its turn like all bytes before it.
        if (got <= 0) epoll_ctl(epoll, EPOLL_CTL_DEL, side->socket, NULL);
        return hold_back(pair, bytes, got > 0 ? (size_t)got : 0);
    }
    if (got > 0 && send_all(pair->server.socket, bytes, (size_t)got)) return;
    hang_up(pair);
    // Freed when the end, which follows all that waits, is due: events of this turn may still name the pair.
    hold_back(pair, bytes, 0);
}

static void watch(struct side *side) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = side};
    set(side->socket, IPPROTO_TCP, TCP_NODELAY, 1);
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, side->socket, &event) == 0, "epoll_ctl");
}

static void welcome(int listener) {
    for (int accepted; (accepted = accept4(listener, NULL, NULL, 0)) >= 0;) {
        struct pair *pair = calloc(1, sizeof *pair);
        require(pair, "memory");
        pair->client = (struct side){.socket = accepted, .other = &pair->server};
        pair->server = (struct side){.socket = socket(AF_INET, SOCK_STREAM, 0), .other = &pair->client};
        if (connect(pair->server.socket, (struct sockaddr *)&upstream, sizeof upstream) != 0) {
            hang_up(pair);
            free(pair);
            continue;
        }
        watch(&pair->client);
        watch(&pair->server);
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fputs("relay --listen ADDRESS:PORT --to ADDRESS:PORT --delay MILLISECONDS\n", stderr);
        return 64;
    }
    upstream = endpoint(option(arguments, "--to", NULL));
    delay = (uint64_t)(atof(option(arguments, "--delay", "0")) * 1e6);
    int listener = listening(SOCK_STREAM | SOCK_NONBLOCK, endpoint(option(arguments, "--listen", NULL)));
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, events[BATCH];
    require(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll");
    for (;;) {
        struct timespec wait = {0};
        if (first) {
            uint64_t now = nanoseconds();
            if (first->due > now) wait.tv_nsec = (long)(first->due - now);
        }
        int ready = epoll_pwait2(epoll, events, BATCH, first ? &wait : NULL, NULL);
        for (int index = 0; index < ready; index++) {
            if (events[index].data.ptr) serve(events[index].data.ptr);
            else welcome(listener);
        }
        if (first) send_due();
    }
}
