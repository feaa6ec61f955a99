/* What the service manager is told (sd_notify) and hands over (sd_listen_fds, sd_watchdog_enabled). */
#include <systemd/sd-daemon.h>
/* Lines for the journal, field by field (sd_journal_sendv). */
#include <systemd/sd-journal.h>

/* Sends one entry: its fields stand one behind the other, each as long as `lengths` says. By an iovec of Swift's it could
   not: there are as many of that type as modules that include it. Negative if it could not be sent. */
static inline int csystemd_journal_send(const uint8_t *fields, const size_t *lengths, size_t count) {
    struct iovec parts[32];
    if (count > sizeof parts / sizeof *parts) return -1;
    for (size_t index = 0; index < count; fields += lengths[index++])
        parts[index] = (struct iovec){(void *)fields, lengths[index]};
    return sd_journal_sendv(parts, (int)count);
}
