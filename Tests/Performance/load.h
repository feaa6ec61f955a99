// One run of the load against one server: how it asks, and what came of it.
#pragma once
#include "histogram.h"
#include "questions.h"

// What nobody answered within this time, in nanoseconds, is lost.
static const uint64_t patience = 2000000000;
// How long the last answers are waited for after the end.
static const uint64_t drain_time = 400000000;

struct load {
    struct sockaddr_in server;
    struct questions questions;
    double rate;        // queries a second on an absolute schedule; 0: closed loop
    unsigned window;    // queries under way at once in the closed loop
    uint64_t limit;     // queries in all, 0: until `seconds` have passed
    double seconds;
    bool spin;          // never sleep: the core is the load's alone
    bool stays;         // a connection is kept for the next query

    uint64_t sent, answered, lost, wrong, reconnects;
    uint64_t answered_in_time;  // before the end, for the rate
    uint64_t answered_before;   // and while the window was still growing, which the rate leaves out
    double elapsed, growing;    // seconds; of the latter so many until the window had its size
    struct histogram known, unknown;  // latencies: names of the file; new ones
};

void run_datagrams(struct load *load);
void run_pipeline(struct load *load);
void run_connections(struct load *load);
void run_clients(struct load *load);

static inline void note_answer(struct load *load, struct question question, uint64_t nanoseconds) {
    load->answered++;
    record(question.is_new ? &load->unknown : &load->known, nanoseconds);
}
