// The limit: what a server costs that does nothing but receive and send. It takes each question for a good one and answers A and
// AAAA with one record. One blocking thread with recvmmsg and sendmmsg for UDP, one with epoll for TCP.
// It is also the name server behind those whose misses go over plain DNS, near or after a given delay.
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "dns_answer.h"

enum { MESSAGE_SPACE = 1500, STREAM_SPACE = 1 << 17 };

static struct sockaddr_in address;
static uint64_t delay;

// Answers that are not due yet, in the order they will be: all wait equally long.
struct answer {
    struct answer *next;
    uint64_t due;
    struct sockaddr_in peer;
    size_t length;
    uint8_t bytes[];
};

static void *serve_datagrams_late(void *unused) {
    int socket = listening(SOCK_DGRAM, address);
    struct answer *first = NULL, **last = &first;
    for (;;) {
        uint64_t now = nanoseconds();
        while (first && first->due <= now) {
            struct answer *due = first;
            sendto(socket, due->bytes, due->length, 0, (struct sockaddr *)&due->peer, sizeof due->peer);
            first = due->next;
            if (!first) last = &first;
            free(due);
        }
        struct timespec wait = {.tv_nsec = first ? (long)(first->due - now) : 0};
        struct pollfd readable = {.fd = socket, .events = POLLIN};
        ppoll(&readable, 1, first ? &wait : NULL, NULL);
        static uint8_t bytes[MESSAGE_SPACE + LONGEST_APPENDED];
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        for (ssize_t got; (got = recvfrom(socket, bytes, MESSAGE_SPACE, MSG_DONTWAIT, (struct sockaddr *)&peer, &size)) >= 0;) {
            size_t length = make_answer(bytes, (size_t)got);
            if (length == 0) continue;
            struct answer *answer = malloc(sizeof *answer + length);
            require(answer, "memory");
            *answer = (struct answer){.due = nanoseconds() + delay, .peer = peer, .length = length};
            memcpy(answer->bytes, bytes, length);
            *last = answer;
            last = &answer->next;
        }
    }
    return unused;
}

static void *serve_datagrams(void *unused) {
    int socket = listening(SOCK_DGRAM, address);
    static _Thread_local uint8_t bytes[BATCH][MESSAGE_SPACE];
    static _Thread_local struct sockaddr_in peers[BATCH];
    struct iovec vectors[BATCH];
    struct mmsghdr in[BATCH] = {0}, out[BATCH] = {0};
    for (int index = 0; index < BATCH; index++) {
        vectors[index] = (struct iovec){bytes[index], MESSAGE_SPACE};
        in[index].msg_hdr = (struct msghdr){
            .msg_name = &peers[index], .msg_namelen = sizeof peers[index], .msg_iov = &vectors[index], .msg_iovlen = 1};
    }
    for (;;) {
        int received = recvmmsg(socket, in, BATCH, MSG_WAITFORONE, NULL);
        if (received < 0) continue;
        unsigned count = 0;
        for (int index = 0; index < received; index++) {
            size_t length = make_answer(bytes[index], in[index].msg_len);
            if (length == 0) continue;
            out[count] = in[index];
            vectors[index].iov_len = length;
            count++;
        }
        for (unsigned done = 0; done < count;) {
            int sent = sendmmsg(socket, out + done, count - done, 0);
            done += sent > 0 ? (unsigned)sent : 1;
        }
        for (int index = 0; index < received; index++) vectors[index].iov_len = MESSAGE_SPACE;
    }
    return unused;
}

struct stream {
    int socket;
    size_t held;
    uint8_t bytes[STREAM_SPACE];
};

// Answers each whole message; false when the connection has ended.
static bool serve(struct stream *stream) {
    static uint8_t out[2 * STREAM_SPACE];
    ssize_t got = recv(stream->socket, stream->bytes + stream->held, STREAM_SPACE - stream->held, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    stream->held += (size_t)got;
    size_t position = 0, written = 0;
    while (stream->held - position > 2 && written < STREAM_SPACE) {
        size_t length = (size_t)stream->bytes[position] << 8 | stream->bytes[position + 1];
        if (length > MESSAGE_SPACE) return false;
        if (stream->held - position - 2 < length) break;
        memcpy(out + written + 2, stream->bytes + position + 2, length);
        size_t end = make_answer(out + written + 2, length);
        out[written] = (uint8_t)(end >> 8);
        out[written + 1] = (uint8_t)end;
        written += end ? end + 2 : 0;
        position += length + 2;
    }
    stream->held -= position;
    memmove(stream->bytes, stream->bytes + position, stream->held);
    for (size_t done = 0; done < written;) {
        ssize_t sent = send(stream->socket, out + done, written - done, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        done += (size_t)sent;
    }
    return true;
}

static void serve_streams(void) {
    int listener = listening(SOCK_STREAM | SOCK_NONBLOCK, address), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, events[BATCH];
    require(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll");
    for (;;) {
        int ready = epoll_wait(epoll, events, BATCH, -1);
        for (int index = 0; index < ready; index++) {
            struct stream *stream = events[index].data.ptr;
            if (stream && !serve(stream)) {
                close(stream->socket);
                free(stream);
            }
            for (int socket; !stream && (socket = accept4(listener, NULL, NULL, 0)) >= 0;) {
                struct stream *accepted = malloc(sizeof *accepted);
                require(accepted, "memory");
                accepted->socket = socket;
                accepted->held = 0;
                set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
                event = (struct epoll_event){.events = EPOLLIN, .data.ptr = accepted};
                require(epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
            }
        }
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fputs("answer --listen ADDRESS:PORT [--listeners N] [--delay MILLISECONDS]\n", stderr);
        return 64;
    }
    address = endpoint(option(arguments, "--listen", NULL));
    only_ipv4 = strcmp(option(arguments, "--families", "both"), "ipv4") == 0;
    delay = (uint64_t)(atof(option(arguments, "--delay", "0")) * 1e6);
    for (int left = atoi(option(arguments, "--listeners", "1")); left > 0; left--) {
        pthread_t thread;
        require(pthread_create(&thread, NULL, delay ? serve_datagrams_late : serve_datagrams, NULL) == 0, "thread");
    }
    serve_streams();
}
