#include <poll.h>

#include "load.h"

// The queries under way on one socket, found by their id. Ids are given in turn, so the oldest is where `oldest` points.
struct flights {
    struct flight {
        uint64_t since;  // 0: none under way
        struct question question;
    } by_id[65536];
    uint16_t next, oldest;
    unsigned count;
};

struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    uint8_t bytes[BATCH][1500];
};

static struct batch *new_batch(void) {
    struct batch *batch = calloc(1, sizeof *batch);
    require(batch, "memory");
    for (int index = 0; index < BATCH; index++) {
        batch->vectors[index] = (struct iovec){batch->bytes[index], sizeof batch->bytes[index]};
        batch->messages[index].msg_hdr = (struct msghdr){.msg_iov = &batch->vectors[index], .msg_iovlen = 1};
    }
    return batch;
}

static void forget_lost(struct load *load, struct flights *flights, uint64_t now, uint64_t age) {
    while (flights->oldest != flights->next) {
        struct flight *flight = &flights->by_id[flights->oldest];
        if (flight->since && flight->since + age > now) return;
        if (flight->since) {
            flight->since = 0;
            flights->count--;
            load->lost++;
        }
        flights->oldest++;
    }
}

static void put(struct load *load, struct flights *flights, struct batch *batch, unsigned index, uint64_t since) {
    struct question question = next_question(&load->questions);
    batch->vectors[index].iov_len = write_query(&load->questions, question, batch->bytes[index]);
    memcpy(batch->bytes[index], &flights->next, 2);
    struct flight *flight = &flights->by_id[flights->next++];
    if (flight->since) load->lost++;
    else flights->count++;
    *flight = (struct flight){since, question};
    load->sent++;
}

static void send_all(int socket, struct batch *batch, unsigned count) {
    for (unsigned done = 0; done < count;) {
        int sent = sendmmsg(socket, batch->messages + done, count - done, 0);
        // Nobody listens (yet, or any more): what is lost is counted as lost.
        if (sent < 0 && (errno == ECONNREFUSED || errno == EINTR || errno == EAGAIN)) continue;
        require(sent > 0, "sendmmsg");
        done += (unsigned)sent;
    }
}

// Reads what waits, or with `flags` waits for the first; returns how many datagrams came.
static int receive(struct load *load, int socket, struct flights *flights, struct batch *batch, int flags,
                   uint64_t end) {
    int received = recvmmsg(socket, batch->messages, BATCH, flags, NULL);
    if (received < 0) {
        require(errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED, "recvmmsg");
        return 0;
    }
    uint64_t now = nanoseconds();
    for (int index = 0; index < received; index++) {
        const uint8_t *bytes = batch->bytes[index];
        size_t length = batch->messages[index].msg_len;
        uint16_t id;
        memcpy(&id, bytes, 2);
        struct flight *flight = &flights->by_id[id];
        if (length < HEADER || !flight->since) continue;  // given up already
        if (!is_answer(&load->questions, flight->question, bytes, length)) load->wrong++;
        else {
            note_answer(load, flight->question, now - flight->since);
            if (now <= end) load->answered_in_time++;
        }
        flight->since = 0;
        flights->count--;
    }
    return received;
}

static void saturate(struct load *load, int socket, struct flights *flights, uint64_t start, uint64_t end) {
    struct batch *out = new_batch(), *in = new_batch();
    set(socket, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    struct timeval wait = {.tv_usec = 50000};
    require(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0, "setsockopt");
    for (uint64_t now = start; now < end; now = nanoseconds()) {
        if (load->limit && load->sent >= load->limit && flights->count == 0) break;
        forget_lost(load, flights, now, patience);
        // Begins gently, so that the first burst does not overflow what the server's socket holds.
        uint64_t window = load->window < 32 + load->answered ? load->window : 32 + load->answered;
        if (window == load->window && load->growing == 0) {
            load->growing = (double)(now - start) / 1e9;
            load->answered_before = load->answered_in_time;
        }
        while (flights->count < window && (!load->limit || load->sent < load->limit)) {
            unsigned count = 0;
            while (count < BATCH && flights->count < window && (!load->limit || load->sent < load->limit))
                put(load, flights, out, count++, now);
            send_all(socket, out, count);
        }
        receive(load, socket, flights, in, MSG_WAITFORONE, end);
    }
    load->elapsed = (double)(nanoseconds() - start) / 1e9;
    while (flights->count && nanoseconds() < end + drain_time) receive(load, socket, flights, in, MSG_WAITFORONE, end);
}

static void keep_pace(struct load *load, int socket, struct flights *flights, uint64_t start, uint64_t end) {
    struct batch *out = new_batch(), *in = new_batch();
    double interval = 1e9 / load->rate;
    for (uint64_t now = start; now < end + drain_time; now = nanoseconds()) {
        uint64_t due = start + (uint64_t)((double)load->sent * interval);
        if (now >= end && flights->count == 0) break;
        unsigned count = 0;
        while (count < BATCH && due <= now && due < end) {
            put(load, flights, out, count++, due);
            due = start + (uint64_t)((double)load->sent * interval);
        }
        if (count) send_all(socket, out, count);
        if (receive(load, socket, flights, in, MSG_DONTWAIT, end) > 0) continue;
        forget_lost(load, flights, now, patience);
        if (load->spin) continue;
        now = nanoseconds();
        uint64_t until = due < end ? due : end + drain_time;
        if (until <= now) continue;
        struct timespec wait = {.tv_sec = (time_t)((until - now) / 1000000000), .tv_nsec = (long)((until - now) % 1000000000)};
        struct pollfd watched = {socket, POLLIN, 0};
        ppoll(&watched, 1, &wait, NULL);
    }
    load->elapsed = load->seconds;
}

void run_datagrams(struct load *load) {
    struct flights *flights = calloc(1, sizeof *flights);
    int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    require(flights && socket_ >= 0, "socket");
    set(socket_, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    require(connect(socket_, (struct sockaddr *)&load->server, sizeof load->server) == 0, "connect");
    uint64_t start = nanoseconds(), end = start + (uint64_t)(load->seconds * 1e9);
    if (load->rate > 0) keep_pace(load, socket_, flights, start, end);
    else saturate(load, socket_, flights, start, end);
    forget_lost(load, flights, nanoseconds(), 0);
    close(socket_);
}
