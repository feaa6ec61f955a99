// An HTTPDNS service that knows every name: type=addrs and single families, one name or a batch, over aes, des or https, each
// answer after a given delay. It speaks DNS over TLS, and over HTTPS by HTTP/1.1 and HTTP/2, as well. One thread; cheap enough
// that it is never what is measured.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "service_text.h"

enum { REQUEST_SPACE = 32768, RESPONSE_SPACE = 8192, FIRST_WINDOW = 65535 };

// What the bench reads while it measures.
struct counts {
    uint64_t connections, requests;
};

struct connection {
    int socket;
    SSL *tls;
    bool closed;
    unsigned waiting;  // responses that are not due yet
    size_t held, queued, space;
    uint8_t *out;
    size_t window;  // octets that may still be sent, where the client says so
    struct response *stalled, **last_stalled;
    char in[REQUEST_SPACE];
};

// Responses that are not due yet, in the order they will be: all wait equally long.
struct response {
    struct response *next;
    uint64_t due;
    struct connection *connection;
    size_t length;
    char bytes[];
};

static struct response *first, **last = &first;
static SSL_CTX *tls;
static int epoll;
static uint64_t delay;
static bool apart;  // one TLS record for each response
static bool acknowledges;  // at once
static struct counts uncounted, *counts = &uncounted;

static void release(struct connection *connection) {
    if (connection->waiting) return;
    for (struct response *next; connection->stalled; connection->stalled = next) {
        next = connection->stalled->next;
        free(connection->stalled);
    }
    free(connection->out);
    free(connection);
}

static void hang_up(struct connection *connection) {
    if (connection->closed) return;
    connection->closed = true;
    if (connection->tls) SSL_free(connection->tls);
    close(connection->socket);
}

// Sends what is queued. A client that leaves it lying until the socket takes no more is none of the bench's.
static void flush(struct connection *connection) {
    size_t length = connection->queued;
    connection->queued = 0;
    if (length == 0) return;
    ssize_t sent = connection->tls ? SSL_write(connection->tls, connection->out, (int)length)
                                   : send(connection->socket, connection->out, length, MSG_NOSIGNAL);
    if (sent != (ssize_t)length) hang_up(connection);
}

static void queue(struct connection *connection, const char *bytes, size_t length) {
    if (connection->queued + length > connection->space) {
        connection->space = 2 * (connection->queued + length);
        connection->out = realloc(connection->out, connection->space);
        require(connection->out, "memory");
    }
    memcpy(connection->out + connection->queued, bytes, length);
    connection->queued += length;
}

static struct response *response_of(struct connection *connection, const char *bytes, size_t length) {
    struct response *response = malloc(sizeof *response + length);
    require(response, "memory");
    *response = (struct response){.due = nanoseconds() + delay, .connection = connection, .length = length};
    memcpy(response->bytes, bytes, length);
    return response;
}

// Queues a response, or keeps it until the client's window takes it.
static void give(struct connection *connection, const char *bytes, size_t length) {
    size_t octets = counted(bytes, length);
    if (octets > connection->window || (octets > 0 && connection->stalled)) {
        if (!connection->stalled) connection->last_stalled = &connection->stalled;
        *connection->last_stalled = response_of(connection, bytes, length);
        connection->last_stalled = &(*connection->last_stalled)->next;
        return;
    }
    connection->window -= octets;
    queue(connection, bytes, length);
}

static void widen(struct connection *connection, size_t octets) {
    connection->window += octets;
    struct response *waiting = connection->stalled;
    connection->stalled = NULL;
    for (struct response *next; waiting; waiting = next) {
        next = waiting->next;
        give(connection, waiting->bytes, waiting->length);
        free(waiting);
    }
}

static void respond(struct connection *connection, const char *request, size_t request_length) {
    static char bytes[RESPONSE_SPACE];
    widen(connection, added_window(request));
    size_t length = response_to(request, request_length, bytes, sizeof bytes);
    if (length == 0) return;
    bool asks = is_question(request);
    counts->requests += asks;
    if (delay == 0 || !asks) return give(connection, bytes, length);
    connection->waiting++;
    *last = response_of(connection, bytes, length);
    last = &(*last)->next;
}

static void send_due(void) {
    uint64_t now = nanoseconds();
    while (first && first->due <= now) {
        struct response *response = first;
        struct connection *connection = response->connection;
        first = response->next;
        if (!first) last = &first;
        connection->waiting--;
        if (!connection->closed) {
            give(connection, response->bytes, response->length);
            flush(connection);
        }
        free(response);
        if (connection->closed) release(connection);
    }
}

static ssize_t receive(struct connection *connection) {
    char *into = connection->in + connection->held;
    size_t space = REQUEST_SPACE - connection->held;
    if (!connection->tls) return recv(connection->socket, into, space, 0);
    int got = SSL_read(connection->tls, into, (int)space);
    // A client that writes a request's head and body apart holds the body back until the head is acknowledged (Nagle).
    if (acknowledges) set(connection->socket, IPPROTO_TCP, TCP_QUICKACK, 1);
    if (got > 0) return got;
    int error = SSL_get_error(connection->tls, got);
    errno = EAGAIN;
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? -1 : 0;
}

static void serve(struct connection *connection) {
    for (;;) {
        ssize_t got = receive(connection);
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return hang_up(connection);
        connection->held += (size_t)got;
        char *start = connection->in, *all = connection->in + connection->held;
        for (size_t length; (length = whole_request(start, (size_t)(all - start))); start += length) {
            respond(connection, start, length);
            if (apart) flush(connection);
        }
        connection->held = (size_t)(all - start);
        memmove(connection->in, start, connection->held);
        if (connection->held == REQUEST_SPACE) return hang_up(connection);
        // All that was there has been read: the next call would only say so.
        if (!connection->tls || !SSL_has_pending(connection->tls)) break;
    }
    flush(connection);
}

static void welcome(int listener) {
    for (int socket; (socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        struct connection *connection = calloc(1, sizeof *connection);
        require(connection, "memory");
        counts->connections++;
        connection->socket = socket;
        connection->window = FIRST_WINDOW;
        set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
        if (tls) {
            connection->tls = SSL_new(tls);
            require(connection->tls && SSL_set_fd(connection->tls, socket), "TLS");
            SSL_set_accept_state(connection->tls);
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        require(epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
    }
}

// Takes the one protocol that is spoken, if the client offers it.
static int choose(SSL *unused, const unsigned char **chosen, unsigned char *length, const unsigned char *offered, unsigned count,
                  void *spoken) {
    unsigned char *found;
    const unsigned char *own = spoken;
    (void)unused;
    if (SSL_select_next_proto(&found, length, own, own[0] + 1u, offered, count) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static void share_counts(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(file >= 0 && ftruncate(file, sizeof *counts) == 0, path);
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    require(counts != MAP_FAILED, path);
}

static void use_certificate(const char *path) {
    tls = SSL_CTX_new(TLS_server_method());
    require(tls && path && SSL_CTX_use_certificate_chain_file(tls, path) == 1
                && SSL_CTX_use_PrivateKey_file(tls, path, SSL_FILETYPE_PEM) == 1, "--certificate: a PEM file with key");
    SSL_CTX_set_read_ahead(tls, 1);
}

int main(int count, char **arguments) {
    if (count < 3) {
        fputs("service --listen ADDRESS:PORT --encryption aes|des|https|dot|doh|doh2 [--key KEY]\n"
              "        [--certificate PEM] [--delay MILLISECONDS] [--counts FILE]\n", stderr);
        return 64;
    }
    const char *encryption = option(arguments, "--encryption", "https");
    use_encryption(encryption, option(arguments, "--key", ""));
    if (strcmp(encryption, "aes") != 0 && strcmp(encryption, "des") != 0) use_certificate(option(arguments, "--certificate", NULL));
    static unsigned char h2[] = "\x02h2";
    acknowledges = strcmp(encryption, "doh2") == 0;
    if (acknowledges) SSL_CTX_set_alpn_select_cb(tls, choose, h2);
    const char *path = option(arguments, "--counts", NULL);
    if (path) share_counts(path);
    apart = strcmp(encryption, "doh") == 0;
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
            struct connection *connection = events[index].data.ptr;
            if (!connection) {
                welcome(listener);
                continue;
            }
            serve(connection);
            if (connection->closed) release(connection);
        }
        if (first) send_due();
    }
}
