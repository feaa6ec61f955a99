// The limit of misses: what a server costs that does nothing but pass questions on over one TLS connection, as DNS over TLS, and
// pass the answers back. One thread, lock-step: a batch of questions, one record up, the answers, a batch back.
#include <openssl/ssl.h>

#include "common.h"

enum { MESSAGE_SPACE = 512, STREAM_SPACE = 1 << 16 };

static uint8_t stream[STREAM_SPACE];

static SSL *connected(struct sockaddr_in upstream, const char *certificate) {
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(server >= 0 && connect(server, (struct sockaddr *)&upstream, sizeof upstream) == 0, "connect");
    set(server, IPPROTO_TCP, TCP_NODELAY, 1);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    require(context && certificate && SSL_CTX_load_verify_file(context, certificate) == 1, "--certificate: a PEM file");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(context, 1);
    SSL *tls = SSL_new(context);
    require(tls && SSL_set_fd(tls, server) == 1 && SSL_connect(tls) == 1, "TLS");
    return tls;
}

// Sends the questions, numbered by their place, and waits for the answers, which take the questions' places.
static void ask(SSL *tls, struct mmsghdr *messages, int count) {
    uint16_t ids[BATCH];
    size_t written = 0;
    for (int index = 0; index < count; index++) {
        uint8_t *message = messages[index].msg_hdr.msg_iov->iov_base;
        size_t length = messages[index].msg_len;
        memcpy(&ids[index], message, sizeof ids[index]);
        message[0] = 0;
        message[1] = (uint8_t)index;
        stream[written] = (uint8_t)(length >> 8);
        stream[written + 1] = (uint8_t)length;
        memcpy(stream + written + 2, message, length);
        written += length + 2;
    }
    require(SSL_write(tls, stream, (int)written) == (int)written, "SSL_write");
    size_t held = 0;
    for (int missing = count; missing > 0;) {
        int got = SSL_read(tls, stream + held, (int)(STREAM_SPACE - held));
        require(got > 0, "SSL_read");
        held += (size_t)got;
        size_t position = 0;
        while (held - position > 2) {
            size_t length = (size_t)stream[position] << 8 | stream[position + 1];
            require(length > HEADER && length <= MESSAGE_SPACE, "an answer's length");
            if (held - position - 2 < length) break;
            const uint8_t *answer = stream + position + 2;
            require(answer[0] == 0 && answer[1] < count, "an answer's number");
            struct iovec *space = messages[answer[1]].msg_hdr.msg_iov;
            memcpy(space->iov_base, answer, length);
            memcpy(space->iov_base, &ids[answer[1]], sizeof *ids);
            space->iov_len = length;
            position += length + 2;
            missing--;
        }
        held -= position;
        memmove(stream, stream + position, held);
    }
}

int main(int count, char **arguments) {
    if (count < 7) {
        fputs("forward --listen ADDRESS:PORT --to ADDRESS:PORT --certificate PEM\n", stderr);
        return 64;
    }
    SSL *tls = connected(endpoint(option(arguments, "--to", NULL)), option(arguments, "--certificate", NULL));
    int socket = listening(SOCK_DGRAM, endpoint(option(arguments, "--listen", NULL)));
    static uint8_t bytes[BATCH][MESSAGE_SPACE];
    static struct sockaddr_in peers[BATCH];
    struct iovec vectors[BATCH];
    struct mmsghdr messages[BATCH] = {0};
    for (;;) {
        for (int index = 0; index < BATCH; index++) {
            vectors[index] = (struct iovec){bytes[index], MESSAGE_SPACE};
            messages[index].msg_hdr = (struct msghdr){
                .msg_name = &peers[index], .msg_namelen = sizeof peers[index], .msg_iov = &vectors[index], .msg_iovlen = 1};
        }
        int received = recvmmsg(socket, messages, BATCH, MSG_WAITFORONE, NULL);
        if (received <= 0) continue;
        ask(tls, messages, received);
        for (int done = 0; done < received;) {
            int sent = sendmmsg(socket, messages + done, (unsigned)(received - done), 0);
            done += sent > 0 ? sent : 1;
        }
    }
}
