#include "questions.h"

#include <math.h>

enum { DRAWS = 1 << 20 };

// A thread's own part of the new names.
static const uint64_t names_a_thread = 1ull << 32;

static uint64_t chance(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t write_name(const char *text, uint8_t wire[NAME_SPACE]) {
    size_t length = strcspn(text, "\r\n");
    require(length > 0 && length < NAME_SPACE - 2, "not a name in the file of names");
    size_t label = 0;
    for (size_t index = 0; index <= length; index++) {
        if (index < length && text[index] != '.') {
            wire[index + 1] = (uint8_t)text[index];
            continue;
        }
        wire[label] = (uint8_t)(index - label);
        label = index + 1;
    }
    wire[length + 1] = 0;
    return length + 2;
}

static void read_names(struct questions *into, const char *path) {
    FILE *file = fopen(path, "r");
    require(file, path);
    char line[NAME_SPACE];
    size_t space = 0;
    while (fgets(line, sizeof line, file)) {
        if (into->count == space) {
            space = space ? 2 * space : 1024;
            into->names = realloc(into->names, space * sizeof *into->names);
            into->lengths = realloc(into->lengths, space * sizeof *into->lengths);
            require(into->names && into->lengths, "memory");
        }
        into->lengths[into->count] = (uint16_t)write_name(line, into->names[into->count]);
        into->count++;
    }
    fclose(file);
    require(into->count > 0, "no name in the file of names");
}

// The n-th name of the file is asked 1/n^exponent as often as the first.
static void draw(struct questions *into, double exponent, double new_percent) {
    double *sums = malloc(into->count * sizeof *sums), sum = 0;
    into->draws = malloc(DRAWS * sizeof *into->draws);
    require(sums && into->draws, "memory");
    for (size_t index = 0; index < into->count; index++) sums[index] = sum += pow((double)index + 1, -exponent);
    for (size_t drawn = 0; drawn < DRAWS; drawn++) {
        if ((double)(chance(&into->random) % 100000) < new_percent * 1000) {
            into->draws[drawn] = UINT32_MAX;
            continue;
        }
        double wanted = (double)(chance(&into->random) >> 11) / (double)(1ull << 53) * sum;
        size_t low = 0, high = into->count - 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (sums[middle] < wanted) low = middle + 1;
            else high = middle;
        }
        into->draws[drawn] = (uint32_t)low;
    }
    free(sums);
}

struct questions read_questions(char **arguments) {
    const char *file = option(arguments, "--names", NULL), *zipf = option(arguments, "--zipf", NULL);
    const char *type = option(arguments, "--type", "a");
    struct questions result = {.random = 0x9E3779B97F4A7C15};
    result.both_types = strcmp(type, "both") == 0;
    result.type = strcmp(type, "aaaa") == 0 ? TYPE_AAAA : TYPE_A;
    result.in_order = flag(arguments, "--in-order");
    result.next_new = strtoull(option(arguments, "--new", "0"), NULL, 10);
    if (file) read_names(&result, file);
    if (zipf) {
        require(file, "--zipf needs --names");
        draw(&result, atof(zipf), atof(option(arguments, "--new-percent", "0")));
    }
    return result;
}

struct questions share_of(const struct questions *whole, unsigned thread) {
    struct questions result = *whole;
    result.next_new += thread * names_a_thread;
    result.random += thread;
    return result;
}

struct question next_question(struct questions *from) {
    struct question result = {.type = from->type};
    // Of a pair, A comes first and AAAA right after it, as a program's stub resolver asks.
    bool second = from->both_types && from->position % 2 == 1;
    uint64_t turn = from->both_types ? from->position / 2 : from->position;
    if (second) result.type = TYPE_AAAA;
    from->position++;
    uint32_t drawn = from->draws ? from->draws[turn % DRAWS] : 0;
    result.is_new = from->count == 0 || drawn == UINT32_MAX;
    if (result.is_new) result.name = second ? from->next_new - 1 : from->next_new++;
    else if (from->draws) result.name = drawn;
    else if (from->in_order) result.name = turn % from->count;
    else {
        static _Thread_local uint64_t last;
        result.name = second ? last : (last = chance(&from->random) % from->count);
    }
    return result;
}

static size_t write_new_name(uint64_t number, uint8_t *into) {
    static const uint8_t form[] = "\020m000000000000000\005bench";
    memcpy(into, form, sizeof form);
    for (uint8_t *digit = into + 16; number; digit--, number >>= 4) *digit = (uint8_t)"0123456789abcdef"[number & 15];
    return sizeof form;
}

size_t write_query(const struct questions *from, struct question question, uint8_t query[QUERY_SPACE]) {
    static const uint8_t header[HEADER] = {0, 0, 1, 0, 0, 1};  // RD, one question
    memcpy(query, header, HEADER);
    size_t end = HEADER;
    if (question.is_new) end += write_new_name(question.name, query + HEADER);
    else {
        memcpy(query + HEADER, from->names[question.name], from->lengths[question.name]);
        end += from->lengths[question.name];
    }
    query[end] = 0;
    query[end + 1] = (uint8_t)question.type;
    query[end + 2] = 0;
    query[end + 3] = 1;
    return end + 4;
}

bool is_answer(const struct questions *from, struct question question, const uint8_t *message, size_t length) {
    uint8_t query[QUERY_SPACE];
    size_t end = write_query(from, question, query);
    return length > end && message[2] & 0x80 && (message[3] & 0x0f) == 0 && message[5] == 1
        && (message[6] | message[7]) != 0 && memcmp(message + HEADER, query + HEADER, end - HEADER) == 0;
}
