// Durations in nanoseconds, counted to within 0.8 %: each power of two has 128 buckets of equal width, as HdrHistogram does it.
#pragma once
#include <stdint.h>

enum { SUB_BITS = 7, OCTAVES = 36 };

struct histogram {
    uint64_t count, sum, buckets[OCTAVES << SUB_BITS];
};

static inline unsigned bucket_of(uint64_t value) {
    unsigned top = 63 - (unsigned)__builtin_clzll(value | 1);
    unsigned shift = top > SUB_BITS ? top - SUB_BITS : 0;
    unsigned bucket = (shift << SUB_BITS) + (unsigned)(value >> shift);
    return bucket < OCTAVES << SUB_BITS ? bucket : (OCTAVES << SUB_BITS) - 1;
}

static inline void record(struct histogram *into, uint64_t value) {
    into->count++;
    into->sum += value;
    into->buckets[bucket_of(value)]++;
}

static inline void merge(struct histogram *into, const struct histogram *from) {
    into->count += from->count;
    into->sum += from->sum;
    for (unsigned bucket = 0; bucket < OCTAVES << SUB_BITS; bucket++) into->buckets[bucket] += from->buckets[bucket];
}

// The middle of the bucket below or in which `share` of all values lie.
static inline double quantile(const struct histogram *of, double share) {
    double wanted = share * (double)of->count, seen = 0;
    for (unsigned bucket = 0; bucket < OCTAVES << SUB_BITS; bucket++) {
        seen += (double)of->buckets[bucket];
        if (of->buckets[bucket] == 0 || seen < wanted) continue;
        unsigned shift = bucket >> SUB_BITS ? (bucket >> SUB_BITS) - 1 : 0;
        return ((double)(bucket - (shift << SUB_BITS)) + 0.5) * (double)(1ull << shift);
    }
    return 0;
}
