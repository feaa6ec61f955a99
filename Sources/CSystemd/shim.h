/* What the service manager is told (sd_notify) and hands over (sd_listen_fds, sd_watchdog_enabled). */
#include <systemd/sd-daemon.h>
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
