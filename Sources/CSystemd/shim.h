#ifndef CSYSTEMD_SHIM_H
#define CSYSTEMD_SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
/* What the service manager is told (sd_notify) and hands over (sd_listen_fds, sd_watchdog_enabled). */
#include <systemd/sd-daemon.h>
/* What systemd-resolved says of its servers (sd_bus_call). */
#include <systemd/sd-bus.h>
/* Lines for the journal, field by field (sd_journal_sendv). */
#include <systemd/sd-journal.h>

/* libsystemd is loaded when a function of it is first called, which happens under systemd alone: with the libraries that it needs
   itself it would take 0.5 ms of each start and 1 MB. Each function here is one of the library's with a `c` before its name, and
   fails with -ENOSYS where there is no such library. */
static inline void *csystemd_function(const char *name) {
    /* What is loaded is only counted the next time; it stays. */
    void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

#define CSYSTEMD(name) __typeof__(&name) function = (__typeof__(&name))csystemd_function(#name)
#define CSYSTEMD_FUNCTION(name, parameters, arguments) \
    static inline int c##name parameters { \
        CSYSTEMD(name); \
        return function ? function arguments : -ENOSYS; \
    }

CSYSTEMD_FUNCTION(sd_notify, (int unset, const char *state), (unset, state))
CSYSTEMD_FUNCTION(sd_watchdog_enabled, (int unset, uint64_t *microseconds), (unset, microseconds))
CSYSTEMD_FUNCTION(sd_listen_fds, (int unset), (unset))
CSYSTEMD_FUNCTION(sd_journal_sendv, (const struct iovec *parts, int count), (parts, count))
CSYSTEMD_FUNCTION(sd_bus_open_system, (sd_bus **bus), (bus))
CSYSTEMD_FUNCTION(sd_bus_message_set_auto_start, (sd_bus_message *message, int on), (message, on))
CSYSTEMD_FUNCTION(sd_bus_call, (sd_bus *bus, sd_bus_message *call, uint64_t microseconds, sd_bus_message **reply),
    (bus, call, microseconds, NULL, reply))
CSYSTEMD_FUNCTION(sd_bus_message_enter_container, (sd_bus_message *message, char kind, const char *contents),
    (message, kind, contents))
CSYSTEMD_FUNCTION(sd_bus_message_exit_container, (sd_bus_message *message), (message))
CSYSTEMD_FUNCTION(sd_bus_message_read_basic, (sd_bus_message *message, char type, void *value), (message, type, value))
CSYSTEMD_FUNCTION(sd_bus_message_read_array, (sd_bus_message *message, char type, const void **value, size_t *length),
    (message, type, value, length))

static inline void csd_bus_flush_close_unref(sd_bus *bus) {
    CSYSTEMD(sd_bus_flush_close_unref);
    if (function) function(bus);
}

static inline void csd_bus_message_unref(sd_bus_message *message) {
    CSYSTEMD(sd_bus_message_unref);
    if (function) function(message);
}

enum { csystemd_most_fields = 32 };

/* Sends one entry: its fields, at most csystemd_most_fields, stand one behind the other, each as long as `lengths` says.
   Negative if it could not be sent. In C since Swift has several types iovec, one for each module that includes it. */
static inline int csystemd_journal_send(const uint8_t *fields, const size_t *lengths, size_t count) {
    struct iovec parts[csystemd_most_fields];
    if (count > csystemd_most_fields) return -1;
    for (size_t index = 0; index < count; fields += lengths[index++])
        parts[index] = (struct iovec){(void *)fields, lengths[index]};
    return csd_journal_sendv(parts, (int)count);
}

/* Asks on the bus for a property, up to 5 s long, and starts no service for it. Negative if there is no answer. In C since two
   of the functions are variadic, which Swift does not import. */
static inline int csystemd_bus_property(
    sd_bus *bus, const char *service, const char *path, const char *interface, const char *name, sd_bus_message **reply) {
    __typeof__(&sd_bus_message_new_method_call) new_call = csystemd_function("sd_bus_message_new_method_call");
    __typeof__(&sd_bus_message_append) append = csystemd_function("sd_bus_message_append");
    if (!new_call || !append) return -ENOSYS;
    sd_bus_message *call = NULL;
    int result = new_call(bus, &call, service, path, "org.freedesktop.DBus.Properties", "Get");
    if (result >= 0) result = csd_bus_message_set_auto_start(call, 0);
    if (result >= 0) result = append(call, "ss", interface, name);
    if (result >= 0) result = csd_bus_call(bus, call, 5000000, reply);
    csd_bus_message_unref(call);
    return result;
}

#endif
