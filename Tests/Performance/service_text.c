#include "service_text.h"

#include <strings.h>

enum { TEXT_SPACE = 3072 };

static enum { PLAIN, AES, DES } cipher;
static enum { HTTPDNS, DOT, DOH } protocol;
static EVP_CIPHER_CTX *encryptor, *decryptor;
static DES_key_schedule schedule;

void use_encryption(const char *encryption, const char *key) {
    protocol = strcmp(encryption, "dot") == 0 ? DOT : strcmp(encryption, "doh") == 0 ? DOH : HTTPDNS;
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

size_t whole_request(const char *bytes, size_t length) {
    if (protocol == DOT) {
        size_t framed = length < 2 ? 0 : 2 + ((size_t)(uint8_t)bytes[0] << 8 | (uint8_t)bytes[1]);
        return framed && framed <= length ? framed : 0;
    }
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
    uint8_t message[2048];
    const char *from = protocol == DOT ? request + 2 : body_of(request, length);
    size_t asked = (size_t)(request + length - from);
    require(asked <= sizeof message - LONGEST_APPENDED, "a query is too long");
    memcpy(message, from, asked);
    size_t answered = make_answer(message, asked);
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
