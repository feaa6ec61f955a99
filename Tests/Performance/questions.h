// What the load asks: names of a file, names that never were asked before, or a mix of both.
#pragma once
#include "common.h"

enum { NAME_SPACE = 256, QUERY_SPACE = HEADER + NAME_SPACE + 4 };

// One question, small enough to be kept for each query under way.
struct question {
    uint64_t name;  // an index into the file's names, or the number of a new name
    uint16_t type;
    bool is_new;
};

struct questions {
    uint8_t (*names)[NAME_SPACE];  // wire form
    uint16_t *lengths;
    size_t count;
    uint32_t *draws;  // a million of the mix in the order to ask them, UINT32_MAX for a new name; NULL: no Zipf law
    bool both_types, in_order;
    uint16_t type;
    uint64_t position, random, next_new;
};

// Options: --names FILE, --new NUMBER (names from that on, m<NUMBER>.bench), --zipf EXPONENT with --new-percent P,
// --type a|aaaa|both, --in-order (each name of the file in turn).
struct questions read_questions(char **arguments);

// The same source for another thread: new names and chance of its own.
struct questions share_of(const struct questions *whole, unsigned thread);

struct question next_question(struct questions *from);

// Writes the query without its id; returns its length.
size_t write_query(const struct questions *from, struct question question, uint8_t query[QUERY_SPACE]);

// Whether the message is a good answer to the question: NOERROR, the same question, at least one record.
bool is_answer(const struct questions *from, struct question question, const uint8_t *message, size_t length);
