/* The one instruction of the hit path that Swift has no word for. */
#ifndef CPREFETCH_H
#define CPREFETCH_H

/* Has the cache line of `address` fetched from memory, and does not wait for it. A hint: nothing is read, and any address
   may be given, even one where there is no memory. */
static inline void cprefetch(const void *_Nonnull address) { __builtin_prefetch(address); }

#endif
