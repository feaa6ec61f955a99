/* What the service manager is told (sd_notify) and hands over (sd_listen_fds, sd_watchdog_enabled). */
#include <systemd/sd-daemon.h>
/* What systemd-resolved says of its servers (sd_bus_call). */
#include <systemd/sd-bus.h>
/* Lines for the journal, field by field (sd_journal_sendv). */
#include <systemd/sd-journal.h>

enum { csystemd_most_fields = 32 };

/* Sends one entry: its fields, at most csystemd_most_fields, stand one behind the other, each as long as `lengths` says.
   Negative if it could not be sent. In C since Swift has several types iovec, one for each module that includes it. */
static inline int csystemd_journal_send(const uint8_t *fields, const size_t *lengths, size_t count) {
    struct iovec parts[csystemd_most_fields];
    if (count > csystemd_most_fields) return -1;
    for (size_t index = 0; index < count; fields += lengths[index++])
        parts[index] = (struct iovec){(void *)fields, lengths[index]};
    return sd_journal_sendv(parts, (int)count);
}

/* Asks on the bus for a property, up to 5 s long, and starts no service for it. Negative if there is no answer. In C since these
   functions are variadic, which Swift does not import. */
static inline int csystemd_bus_property(
    sd_bus *bus, const char *service, const char *path, const char *interface, const char *name, sd_bus_message **reply) {
    sd_bus_message *call = NULL;
    int result = sd_bus_message_new_method_call(bus, &call, service, path, "org.freedesktop.DBus.Properties", "Get");
    if (result >= 0) result = sd_bus_message_set_auto_start(call, 0);
    if (result >= 0) result = sd_bus_message_append(call, "ss", interface, name);
    if (result >= 0) result = sd_bus_call(bus, call, 5000000, NULL, reply);
    sd_bus_message_unref(call);
    return result;
}
