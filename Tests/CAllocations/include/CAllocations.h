#pragma once
#include <stdbool.h>

/// Whether allocations are counted: not under a sanitizer, which has an allocator of its own.
bool allocationsAreCounted(void);

/// How often the calling thread has asked for heap memory so far.
long allocationsOfThisThread(void);
