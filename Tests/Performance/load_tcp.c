#include <sys/epoll.h>
#include <sys/time.h>

#include "load.h"

// Connections come from these many addresses from 127.0.1.1 on: ports of one would be used up within seconds.
enum { SOURCES = 200, STREAM_SPACE = 1 << 17 };

static int connection(const struct sockaddr_in *server, int flags) {
    static _Atomic uint32_t turn;
    int result = socket(AF_INET, SOCK_STREAM | flags, 0);
    require(result >= 0, "socket");
    set(result, IPPROTO_TCP, TCP_NODELAY, 1);
    set(result, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000101 + turn++ % SOURCES)};
    require(bind(result, (struct sockaddr *)&source, sizeof source) == 0, "bind");
    if (connect(result, (const struct sockaddr *)server, sizeof *server) != 0 && errno != EINPROGRESS) {
        close(result);
        return -1;
    }
    return result;
}

static size_t frame(struct questions *questions, struct question question, uint16_t id, uint8_t *into) {
    size_t length = write_query(questions, question, into + 2);
    into[0] = (uint8_t)(length >> 8);
    into[1] = (uint8_t)length;
    memcpy(into + 2, &id, 2);
    return length + 2;
}

// `window` connections at once, with one query under way on each: closed when its answer is there, or kept for the next.

struct client {
    int socket;
    bool asked;
    struct question question;
    uint64_t since;
    size_t received;
    uint8_t reply[2048];
};

static void next(struct load *load, struct client *client) {
    client->asked = false;
    client->received = 0;
    client->since = nanoseconds();
    client->question = next_question(&load->questions);
    load->sent++;
}

static bool ask_on(struct load *load, struct client *client) {
    uint8_t query[QUERY_SPACE + 2];
    size_t length = frame(&load->questions, client->question, 0x4242, query);
    client->asked = true;
    return send(client->socket, query, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static void finish(struct load *load, struct client *client, uint64_t end) {
    uint64_t now = nanoseconds();
    if (client->received > 2 && is_answer(&load->questions, client->question, client->reply + 2, client->received - 2)) {
        note_answer(load, client->question, now - client->since);
        if (now <= end) load->answered_in_time++;
        if (load->stays && now < end && (!load->limit || load->sent < load->limit)) {
            next(load, client);
            if (ask_on(load, client)) return;
            load->lost++;
        }
    } else if (client->received == 0) load->lost++;
    else load->wrong++;
    close(client->socket);
    client->socket = -1;
}

static void begin(struct load *load, struct client *client, int epoll) {
    client->socket = connection(&load->server, SOCK_NONBLOCK);
    if (client->socket < 0) return;
    next(load, client);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client};
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, client->socket, &event) == 0, "epoll_ctl");
}

static void proceed(struct load *load, struct client *client, uint32_t events, uint64_t end) {
    if (events & EPOLLOUT && !client->asked && !ask_on(load, client)) return finish(load, client, end);
    while (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t got = recv(client->socket, client->reply + client->received, sizeof client->reply - client->received, 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) return finish(load, client, end);
        client->received += (size_t)got;
        size_t whole = (size_t)client->reply[0] << 8 | client->reply[1];
        if (client->received >= 2 && client->received >= whole + 2) return finish(load, client, end);
    }
}

void run_connections(struct load *load) {
    int epoll = epoll_create1(0);
    struct client *clients = calloc(load->window, sizeof *clients);
    require(epoll >= 0 && clients, "memory");
    for (unsigned index = 0; index < load->window; index++) clients[index].socket = -1;
    uint64_t start = nanoseconds(), end = start + (uint64_t)(load->seconds * 1e9), now = start;
    for (bool open = true; now < end || (open && now < end + drain_time); now = nanoseconds()) {
        open = false;
        for (unsigned index = 0; index < load->window; index++) {
            struct client *client = &clients[index];
            if (client->socket >= 0 && client->since + patience < now) finish(load, client, end);
            if (client->socket < 0 && now < end && (!load->limit || load->sent < load->limit)) begin(load, client, epoll);
            open |= client->socket >= 0;
        }
        if (load->limit && load->sent >= load->limit && !open) break;
        struct epoll_event events[BATCH];
        int ready = epoll_wait(epoll, events, BATCH, 20);
        for (int index = 0; index < ready; index++) proceed(load, events[index].data.ptr, events[index].events, end);
    }
    for (unsigned index = 0; index < load->window; index++)
        if (clients[index].socket >= 0) finish(load, &clients[index], end);
    load->elapsed = (double)((now < end ? now : end) - start) / 1e9;
    close(epoll);
}

void run_clients(struct load *load) {
    load->stays = true;
    run_connections(load);
}

// One connection, `window` queries under way on it.

struct pipeline {
    int socket;
    uint16_t next;
    unsigned under_way;
    size_t held;
    struct {
        uint64_t since;
        struct question question;
    } by_id[65536];
    uint8_t stream[STREAM_SPACE];
};

static void ask(struct load *load, struct pipeline *pipeline) {
    static _Thread_local uint8_t out[BATCH * (QUERY_SPACE + 2)];
    size_t length = 0;
    uint64_t now = nanoseconds();
    for (unsigned count = 0; count < BATCH && pipeline->under_way < load->window; count++) {
        if (load->limit && load->sent >= load->limit) break;
        struct question question = next_question(&load->questions);
        pipeline->by_id[pipeline->next].since = now;
        pipeline->by_id[pipeline->next].question = question;
        length += frame(&load->questions, question, pipeline->next++, out + length);
        pipeline->under_way++;
        load->sent++;
    }
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(pipeline->socket, out + done, length - done, MSG_NOSIGNAL);
        if (sent <= 0) return;  // closed: the read will say so
        done += (size_t)sent;
    }
}

static void take(struct load *load, struct pipeline *pipeline, uint64_t end) {
    uint64_t now = nanoseconds();
    size_t position = 0;
    while (pipeline->held - position >= 2 + HEADER) {
        const uint8_t *message = pipeline->stream + position + 2;
        size_t length = (size_t)message[-2] << 8 | message[-1];
        if (pipeline->held - position - 2 < length) break;
        uint16_t id;
        memcpy(&id, message, 2);
        position += 2 + length;
        if (pipeline->by_id[id].since == 0) continue;
        if (is_answer(&load->questions, pipeline->by_id[id].question, message, length)) {
            note_answer(load, pipeline->by_id[id].question, now - pipeline->by_id[id].since);
            if (now <= end) load->answered_in_time++;
        } else load->wrong++;
        pipeline->by_id[id].since = 0;
        pipeline->under_way--;
    }
    pipeline->held -= position;
    memmove(pipeline->stream, pipeline->stream + position, pipeline->held);
}

static void reconnect(struct load *load, struct pipeline *pipeline) {
    if (pipeline->socket >= 0) {
        close(pipeline->socket);
        load->reconnects++;
        load->lost += pipeline->under_way;
    }
    memset(pipeline->by_id, 0, sizeof pipeline->by_id);
    pipeline->under_way = 0;
    pipeline->held = 0;
    pipeline->socket = connection(&load->server, 0);
    require(pipeline->socket >= 0, "connect");
    struct timeval wait = {.tv_usec = 100000};
    require(setsockopt(pipeline->socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0, "setsockopt");
}

void run_pipeline(struct load *load) {
    struct pipeline *pipeline = calloc(1, sizeof *pipeline);
    require(pipeline, "memory");
    pipeline->socket = -1;
    reconnect(load, pipeline);
    uint64_t start = nanoseconds(), end = start + (uint64_t)(load->seconds * 1e9), now = start, last = start;
    for (; now < end || (pipeline->under_way && now < end + drain_time); now = nanoseconds()) {
        if (now < end) ask(load, pipeline);
        if (load->limit && load->sent >= load->limit && pipeline->under_way == 0) break;
        ssize_t got = recv(pipeline->socket, pipeline->stream + pipeline->held, STREAM_SPACE - pipeline->held, 0);
        if (got > 0) {
            pipeline->held += (size_t)got;
            take(load, pipeline, end);
            last = now;
        } else if (got == 0 || errno != EAGAIN || now > last + patience) {
            if (now >= end) break;
            reconnect(load, pipeline);
            last = now;
        }
    }
    load->lost += pipeline->under_way;
    load->elapsed = (double)((now < end ? now : end) - start) / 1e9;
    close(pipeline->socket);
}
