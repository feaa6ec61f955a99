#include "service_text.h"

#include <strings.h>

enum { TEXT_SPACE = 3072 };

static enum { PLAIN, AES, DES } cipher;
static enum { HTTPDNS, DOT, DOH, DOH2 } protocol;
static EVP_CIPHER_CTX *encryptor, *decryptor;
static DES_key_schedule schedule;

void use_encryption(const char *encryption, const char *key) {
    protocol = strcmp(encryption, "dot") == 0    ? DOT
               : strcmp(encryption, "doh") == 0  ? DOH
               : strcmp(encryption, "doh2") == 0 ? DOH2
                                                 : HTTPDNS;
    cipher = strcmp(encryption, "aes") == 0 ? AES : strcmp(encryption, "des") == 0 ? DES : PLAIN;
    errno = 0;
    require(cipher == PLAIN || strlen(key) == (cipher == AES ? 16 : 8), "--key: 16 characters for aes, 8 for des");
    if (cipher == AES) {
        encryptor = EVP_CIPHER_CTX_new();
        decryptor = EVP_CIPHER_CTX_new();
        require(EVP_EncryptInit_ex(encryptor, EVP_aes_128_cbc(), NULL, (const uint8_t *)key, NULL)
                    && EVP_DecryptInit_ex(decryptor, EVP_aes_128_cbc(), NULL, (const uint8_t *)key, NULL), "AES");
    }
    if (cipher == DES) DES_set_key_unchecked((const_DES_cblock *)key, &schedule);
}

static size_t from_hex(const char *text, size_t length, uint8_t *into) {
    for (size_t index = 0; index + 1 < length; index += 2) {
        unsigned high = (unsigned char)text[index], low = (unsigned char)text[index + 1];
        into[index / 2] = (uint8_t)((high % 32 + 9 * (high > '9')) % 16 << 4 | (low % 32 + 9 * (low > '9')) % 16);
    }
    return length / 2;
}

static size_t to_hex(const uint8_t *bytes, size_t length, char *into) {
    for (size_t index = 0; index < length; index++) {
        into[2 * index] = "0123456789abcdef"[bytes[index] >> 4];
        into[2 * index + 1] = "0123456789abcdef"[bytes[index] & 15];
    }
    return 2 * length;
}

static void des(const uint8_t *from, uint8_t *into, size_t length, int direction) {
    for (size_t block = 0; block + 8 <= length; block += 8)
        DES_ecb_encrypt((const_DES_cblock *)(from + block), (DES_cblock *)(into + block), &schedule, direction);
}

// What `dn` says in clear; 0 for what cannot be read.
static size_t decrypt(const char *sent, size_t length, char *text) {
    uint8_t payload[TEXT_SPACE];
    if (length >= TEXT_SPACE) return 0;
    if (cipher == PLAIN) {
        memcpy(text, sent, length);
        return length;
    }
    size_t count = from_hex(sent, length, payload);
    if (cipher == DES) {
        des(payload, (uint8_t *)text, count, DES_DECRYPT);
        size_t padding = count ? (uint8_t)text[count - 1] : 0;
        return padding >= 1 && padding <= 8 ? count - padding : 0;
    }
    int body = 0, tail = 0;
    if (count < 32 || !EVP_DecryptInit_ex(decryptor, NULL, NULL, NULL, payload)
        || !EVP_DecryptUpdate(decryptor, (uint8_t *)text, &body, payload + 16, (int)count - 16)
        || !EVP_DecryptFinal_ex(decryptor, (uint8_t *)text + body, &tail)) return 0;
    return (size_t)(body + tail);
}

static size_t encrypt(const char *text, size_t length, char *into) {
    uint8_t padded[TEXT_SPACE + 16], payload[TEXT_SPACE + 32];
    if (cipher == PLAIN) {
        memcpy(into, text, length);
        return length;
    }
    if (cipher == DES) {
        size_t padding = 8 - length % 8;
        memcpy(padded, text, length);
        memset(padded + length, (int)padding, padding);
        des(padded, payload, length + padding, DES_ENCRYPT);
        return to_hex(payload, length + padding, into);
    }
    int body = 0, tail = 0;
    require(RAND_bytes(payload, 16) == 1 && EVP_EncryptInit_ex(encryptor, NULL, NULL, NULL, payload)
                && EVP_EncryptUpdate(encryptor, payload + 16, &body, (const uint8_t *)text, (int)length)
                && EVP_EncryptFinal_ex(encryptor, payload + 16 + body, &tail), "AES");
    return to_hex(payload, 16 + (size_t)(body + tail), into);
}

// The value of a parameter between `start` and `end`, an empty one if it is not there.
static const char *parameter(const char *start, const char *end, const char *name, size_t *length) {
    *length = 0;
    for (const char *at = start; at && at < end; at = memchr(at, '&', (size_t)(end - at)), at = at ? at + 1 : NULL) {
        size_t named = strlen(name);
        if ((size_t)(end - at) <= named || memcmp(at, name, named) != 0 || at[named] != '=') continue;
        const char *value = at + named + 1, *after = memchr(value, '&', (size_t)(end - value));
        *length = (size_t)((after ? after : end) - value);
        return value;
    }
    return end;
}

// NAME.:A,TTL-AAAA,TTL|CLIENT
static size_t line(const char *name, size_t length, bool v4, bool v6, char *into) {
    uint32_t hash = 2166136261;
    for (size_t index = 0; index < length; index++) hash = (hash ^ (uint8_t)name[index]) * 16777619;
    memcpy(into, name, length);
    size_t end = length + (size_t)sprintf(into + length, ".:");
    if (v4) end += (size_t)sprintf(into + end, "198.18.%u.%u,3600", hash >> 8 & 255, hash & 255);
    if (v4 && v6) into[end++] = '-';
    if (v6) end += (size_t)sprintf(into + end, "2001:db8:18::%x,3600", hash & 0xffff);
    return end + (size_t)sprintf(into + end, "|203.0.113.7");
}

// What the service says of all names of the request; 0 for a request that it refuses.
static size_t answer(const char *start, const char *end, char *text) {
    static const char method[] = "GET /d?";
    const char *target_end = memchr(start, '\r', (size_t)(end - start));
    if (!target_end) target_end = end;
    if ((size_t)(target_end - start) < sizeof method + 9 || memcmp(start, method, sizeof method - 1) != 0) return 0;
    const char *query = start + sizeof method - 1, *query_end = memchr(query, ' ', (size_t)(target_end - query));
    if (!query_end) return 0;
    size_t sent_length, kind_length;
    const char *sent = parameter(query, query_end, "dn", &sent_length);
    parameter(query, query_end, "type", &kind_length);
    // Lengths tell "addrs" from "aaaa" from nothing.
    bool both = kind_length == 5, v6 = kind_length == 4;
    char names[TEXT_SPACE];
    size_t length = decrypt(sent, sent_length, names), written = 0;
    for (const char *name = names, *comma; name < names + length; name = comma + 1) {
        comma = memchr(name, ',', (size_t)(names + length - name));
        if (!comma) comma = names + length;
        if (written + (size_t)(comma - name) + 128 > TEXT_SPACE) return 0;
        if (written) text[written++] = '\n';
        written += line(name, (size_t)(comma - name), !v6, v6 || both, text + written);
    }
    return written;
}

static size_t httpdns_response(const char *start, const char *end, char *into, size_t space) {
    static char text[TEXT_SPACE], body[3 * TEXT_SPACE];
    size_t length = answer(start, end, text);
    if (length == 0) return (size_t)snprintf(into, space, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    length = encrypt(text, length, body);
    int head = snprintf(into, space, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %zu\r\n\r\n", length);
    require((size_t)head + length <= space, "an answer is too long");
    memcpy(into + head, body, length);
    return (size_t)head + length;
}

// Where the head ends and the body begins; NULL while it is not there.
static const char *body_of(const char *bytes, size_t length) {
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    return end ? end + 4 : NULL;
}

// HTTP/2 (RFC 9113), as little of it as serves: heads are not looked at, so a question is what stands in one DATA frame; the
// window for what clients send is as large as there is, and never widened.
enum { FRAME_HEAD = 9, PREFACE = 24, GREETED = 'P' };
enum { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

// The length of a frame's payload, at most 2^14 (§4.2); of the preface it is far more.
static size_t payload_of(const char *frame) {
    const uint8_t *bytes = (const uint8_t *)frame;
    return (size_t)bytes[0] << 16 | (size_t)bytes[1] << 8 | bytes[2];
}

static size_t frame_head(char *into, size_t length, int type, int flags, const char *stream) {
    const char head[5] = {(char)(length >> 16), (char)(length >> 8), (char)length, (char)type, (char)flags};
    memcpy(into, head, sizeof head);
    memcpy(into + sizeof head, stream, 4);
    return FRAME_HEAD;
}

static size_t whole_frame(const char *bytes, size_t length) {
    if (length < FRAME_HEAD) return 0;
    size_t whole = bytes[0] == GREETED ? PREFACE : FRAME_HEAD + payload_of(bytes);
    return whole <= length ? whole : 0;
}

bool is_question(const char *request) {
    return protocol != DOH2 || (request[0] != GREETED && request[3] == DATA && payload_of(request) > HEADER);
}

size_t added_window(const char *request) {
    static const char connection[4];
    if (protocol != DOH2 || request[0] == GREETED || request[3] != WINDOW_UPDATE || memcmp(request + 5, connection, 4) != 0) return 0;
    const uint8_t *bytes = (const uint8_t *)request + FRAME_HEAD;
    return (size_t)(bytes[0] & 127) << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

size_t counted(const char *response, size_t length) {
    if (protocol != DOH2 || response[3] != HEADERS) return 0;
    return length - 2 * FRAME_HEAD - payload_of(response);
}

// What a frame that asks nothing is answered by.
static size_t courtesy(const char *frame, char *into) {
    static const char connection[4], settings[] = {0, 3, 0, 0, 3, (char)232}, window[] = {127, (char)255, 0, 0};
    if (frame[0] == GREETED) {  // a thousand streams at once
        size_t end = frame_head(into, sizeof settings, SETTINGS, 0, connection);
        memcpy(into + end, settings, sizeof settings);
        end += sizeof settings;
        end += frame_head(into + end, sizeof window, WINDOW_UPDATE, 0, connection);
        memcpy(into + end, window, sizeof window);
        return end + sizeof window;
    }
    if ((frame[3] != SETTINGS && frame[3] != PING) || frame[4] & ACK) return 0;
    size_t length = frame[3] == PING ? payload_of(frame) : 0, end = frame_head(into, length, frame[3], ACK, connection);
    memcpy(into + end, frame + FRAME_HEAD, length);
    return end + length;
}

// Heads and body of the answer.
static size_t answer_frames(const char *stream, const uint8_t *message, size_t length, char *into) {
    // RFC 7541: :status 200; content-type and content-length, by their places in the static table, not to be remembered.
    static const char head[] = "\x88\x0f\x10\x17" "application/dns-message\x0f\x0d";
    char *at = into + FRAME_HEAD;
    memcpy(at, head, sizeof head - 1);
    at += sizeof head - 1;
    at[0] = (char)sprintf(at + 1, "%zu", length);
    at += 1 + at[0];
    frame_head(into, (size_t)(at - into) - FRAME_HEAD, HEADERS, END_HEADERS, stream);
    at += frame_head(at, length, DATA, END_STREAM, stream);
    memcpy(at, message, length);
    return (size_t)(at - into) + length;
}

size_t whole_request(const char *bytes, size_t length) {
    if (protocol == DOT) {
        size_t framed = length < 2 ? 0 : 2 + ((size_t)(uint8_t)bytes[0] << 8 | (uint8_t)bytes[1]);
        return framed && framed <= length ? framed : 0;
    }
    if (protocol == DOH2) return whole_frame(bytes, length);
    const char *body = body_of(bytes, length);
    if (!body) return 0;
    size_t whole = (size_t)(body - bytes);
    if (protocol == DOH) {
        static const char field[] = "content-length:";
        for (const char *at = bytes; at < body; at = (const char *)memchr(at, '\n', (size_t)(body - at)) + 1)
            if (strncasecmp(at, field, sizeof field - 1) == 0) whole += strtoul(at + sizeof field - 1, NULL, 10);
    }
    return whole <= length ? whole : 0;
}

size_t response_to(const char *request, size_t length, char *into, size_t space) {
    if (protocol == HTTPDNS) return httpdns_response(request, request + length, into, space);
    if (protocol == DOH2 && !is_question(request)) return courtesy(request, into);
    uint8_t message[2048];
    const char *from = protocol == DOT ? request + 2 : protocol == DOH2 ? request + FRAME_HEAD : body_of(request, length);
    size_t asked = (size_t)(request + length - from);
    require(asked <= sizeof message - LONGEST_APPENDED, "a query is too long");
    memcpy(message, from, asked);
    size_t answered = make_answer(message, asked);
    if (protocol == DOH2) return answer_frames(request + 5, message, answered, into);
    int head = 2;
    if (protocol == DOH)
        head = snprintf(into, space, "HTTP/1.1 200 OK\r\nContent-Type: application/dns-message\r\nContent-Length: %zu\r\n\r\n",
                        answered);
    else {
        into[0] = (char)(answered >> 8);
        into[1] = (char)answered;
    }
    memcpy(into + head, message, answered);
    return (size_t)head + answered;
}
