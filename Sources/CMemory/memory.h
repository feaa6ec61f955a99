/* What Swift has no word for and the cache wants of memory and of the processor. */
#ifndef CMEMORY_H
#define CMEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Has the cache line of `address` fetched from memory, and does not wait for it. A hint: nothing is read, and any address
   may be given, even one where there is no memory. */
static inline void cmemory_prefetch(const void *_Nonnull address) { __builtin_prefetch(address); }

/* Memory for so many numbers, all 0, to be given back with `free`. Of a large piece nothing is resident before it is used. */
static inline void *_Nullable cmemory_zeros(size_t count) { return calloc(count, sizeof(uint32_t)); }

/* Whether there is an instruction for CRC-32C: on x86-64 the processor is asked, on arm64 the build must be for one that
   has it. */
static inline bool cmemory_has_crc32c(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
#elif defined(__ARM_FEATURE_CRC32)
    return true;
#else
    return false;
#endif
}

/* What a CRC-32C that stands at `state` is behind so many groups of eight octets. Only where there is an instruction. */
#if defined(__x86_64__)
__attribute__((target("sse4.2")))
#endif
static inline uint32_t cmemory_crc32c(uint32_t state, const void *_Nonnull octets, size_t groups) {
    const uint8_t *at = (const uint8_t *)octets;
    for (; groups > 0; groups--, at += 8) {
        uint64_t group;
        memcpy(&group, at, sizeof group);
#if defined(__x86_64__)
        state = (uint32_t)__builtin_ia32_crc32di(state, group);
#elif defined(__ARM_FEATURE_CRC32)
        state = __builtin_arm_crc32cd(state, group);
#else
        __builtin_trap();
#endif
    }
    return state;
}

#endif
