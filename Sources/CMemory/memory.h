/* What Swift has no word for and the cache wants of memory and of the processor. */
#ifndef CMEMORY_H
#define CMEMORY_H

#include <stddef.h>
#include <sys/mman.h>

/* Has the cache line of `address` fetched from memory, and does not wait for it. A hint: nothing is read, and any address
   may be given, even one where there is no memory. */
static inline void cmemory_prefetch(const void *_Nonnull address) { __builtin_prefetch(address); }

/* So many octets, all 0, of whole pages of their own: none is resident before it is used, which `calloc` does not promise. NULL:
   there is no memory. */
static inline void *_Nullable cmemory_map(size_t octets) {
  void *memory = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* Gives them back. */
static inline void cmemory_unmap(void *_Nonnull memory, size_t octets) { munmap(memory, octets); }

#endif
