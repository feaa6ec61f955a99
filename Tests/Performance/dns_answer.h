// The plausible answer: A and AAAA have one record, or A alone if `only_ipv4` is set, and all else has none. An OPT is answered by an OPT.
#pragma once
#include "common.h"

enum { LONGEST_APPENDED = 34 + 11 };

static bool only_ipv4 = false;

static inline size_t append(uint8_t *message, size_t end, const void *bytes, size_t count) {
    memcpy(message + end, bytes, count);
    return end + count;
}

// Makes the query its own answer, in the same memory; returns the length, 0 for what is no query.
static inline size_t make_answer(uint8_t *message, size_t length) {
    static const uint8_t v4[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 198, 18, 0, 1};
    static const uint8_t v6[] = {0xc0, 12, 0, 28, 0, 1, 0, 0, 14, 16, 0, 16, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static const uint8_t soa[] = {0xc0, 12, 0, 6, 0, 1, 0, 0, 14, 16, 0, 22, 0, 0, 0, 0, 0, 1, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 14, 16};
    static const uint8_t opt[] = {0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0};
    size_t end = length > HEADER ? question_end(message, length) : 0;
    if (end == 0 || message[2] & 0x80) return 0;
    unsigned type = (unsigned)message[end - 4] << 8 | message[end - 3];
    bool extended = message[11] > 0;
    message[2] = 0x80 | (message[2] & 1);
    message[3] = 0x80;  // RA, NOERROR
    bool has_ipv6 = type == TYPE_AAAA && !only_ipv4;
    message[7] = type == TYPE_A || has_ipv6;
    message[9] = type == TYPE_AAAA && only_ipv4;  // the SOA of a name without this type (RFC 2308)
    message[11] = extended;
    if (type == TYPE_A) end = append(message, end, v4, sizeof v4);
    if (has_ipv6) end = append(message, end, v6, sizeof v6);
    if (message[9]) end = append(message, end, soa, sizeof soa);
    return extended ? append(message, end, opt, sizeof opt) : end;
}
