// Tells ThreadSanitizer what it cannot see of Swift's Mutex: a thread that finds one locked waits in the runtime library,
// which is not instrumented, and the kernel gives it the lock. Without this each contended lock is reported as a race.
// Linked into the executables of `make test-tsan`, it stands before the library's functions and calls them.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stdint.h>

#define SELF __attribute__((swift_context)) void *self
#define SWIFT __attribute__((swiftcall))

// Synchronization._MutexHandle._lockSlow(Swift.UInt32) -> ()
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
// Synchronization._MutexHandle._tryLockSlow() -> Swift.Bool
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
// Synchronization._MutexHandle._unlockSlow() -> ()
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF) __asm__(TRY_LOCK);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK);

static SWIFT void (*library_lock)(uint32_t, SELF);
static SWIFT bool (*library_try_lock)(SELF);
static SWIFT void (*library_unlock)(SELF);

__attribute__((constructor)) static void find(void) {
    library_lock = dlsym(RTLD_NEXT, LOCK);
    library_try_lock = dlsym(RTLD_NEXT, TRY_LOCK);
    library_unlock = dlsym(RTLD_NEXT, UNLOCK);
}

SWIFT void lock_slow(uint32_t thread, SELF) {
    library_lock(thread, self);
    __tsan_acquire(self);
}

SWIFT bool try_lock_slow(SELF) {
    bool isLocked = library_try_lock(self);
    if (isLocked) __tsan_acquire(self);
    return isLocked;
}

SWIFT void unlock_slow(SELF) {
    __tsan_release(self);
    library_unlock(self);
}
