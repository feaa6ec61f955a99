/* What the service manager is told (sd_notify) and hands over (sd_listen_fds, sd_watchdog_enabled). */
#include <systemd/sd-daemon.h>
