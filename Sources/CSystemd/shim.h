/* What the service manager is told (sd_notify) and hands over (sd_listen_fds, sd_watchdog_enabled). */
#include <systemd/sd-daemon.h>
/* Lines for the journal, field by field (sd_journal_sendv). */
#include <systemd/sd-journal.h>
