/* What Swift has no word for and the cache wants of memory and of the processor. */
#ifndef CMEMORY_H
#define CMEMORY_H

#include <stdint.h>
#include <stdlib.h>

/* Has the cache line of `address` fetched from memory, and does not wait for it. A hint: nothing is read, and any address
   may be given, even one where there is no memory. */
static inline void cmemory_prefetch(const void *_Nonnull address) { __builtin_prefetch(address); }

/* Memory for so many numbers, all 0, to be given back with `free`. Of a large piece nothing is resident before it is used. */
static inline void *_Nullable cmemory_zeros(size_t count) { return calloc(count, sizeof(uint32_t)); }

#endif
