#define _GNU_SOURCE
#include "CKernel.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <malloc.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The simulated kernel, in Swift: a result, or the negative error number. */
long sim_socket(int family, int type);
long sim_bind(int fd, const void *name, long length);
long sim_bind_path(int fd, const char *path);
long sim_listen(int fd);
long sim_connect(int fd, const void *name, long length);
long sim_connect_path(int fd, const char *path);
long sim_accept(int fd, void *name, uint32_t *length);
long sim_send(int fd, const void *bytes, long count);
long sim_recv(int fd, void *bytes, long count);
long sim_sendto(int fd, const void *bytes, long count, const void *name, long length);
long sim_recvfrom(int fd, void *bytes, long count, void *name, uint32_t *length);
long sim_next_error(int fd, void *bytes, long count);
long sim_shutdown(int fd);
long sim_getsockname(int fd, void *name, uint32_t *length);
long sim_getsockopt(int fd, int level, int option);
long sim_close(int fd);
long sim_read(int fd, void *bytes, long count);
long sim_write(int fd, const void *bytes, long count);
long sim_epoll_create(void);
long sim_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t token);
long sim_epoll_next(int epoll, int start, uint32_t *events, uint64_t *token);
long sim_poll(int first, int second);
long sim_eventfd(void);
long sim_timerfd_create(void);
long sim_timerfd_settime(int fd, uint64_t at);
uint64_t sim_clock(int clock);
uint64_t sim_random(void);
long sim_open(const char *path, int flags);
long sim_stat(const char *path, uint32_t *mode, uint64_t *size, uint64_t *number);
long sim_fstat(int fd, uint32_t *mode, uint64_t *size, uint64_t *number);
long sim_truncate(int fd);
long sim_pread(int fd, void *bytes, long count, long offset);
long sim_rename(const char *from, const char *to);
long sim_unlink(const char *path);
long sim_inotify(void);
long sim_inotify_add(int fd, const char *path, uint32_t mask);
long sim_inotify_remove(int fd, int watch);

static int active;
/* Far from those of the process. */
enum { first_descriptor = 1000000 };
static int is_ours(int fd) { return fd >= first_descriptor; }

void kernel_begin(void) { active = 1; }

uint64_t kernel_real_nanoseconds(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t kernel_allocated(void) { struct mallinfo2 info = mallinfo2(); return info.uordblks + info.hblkhd; }

static long done(long result) {
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}

void kernel_restart_with(const char *name, const char *value, char *const *arguments) {
    const char *present = getenv(name);
    if (present && !strcmp(present, value)) return;
    setenv(name, value, 1);
    execv("/proc/self/exe", arguments);
}

int kernel_fork(int is_quiet) {
    fflush(NULL);
    int child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (is_quiet) {
        int nowhere = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
        syscall(SYS_close, nowhere);
    }
    return 0;
}

int kernel_wait(int child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

uint64_t *kernel_shared(void) {
    void *page = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void kernel_alarm(unsigned seconds) { alarm(seconds); }

/* Random octets. */

static void fill(unsigned char *bytes, size_t count) {
    while (count) {
        uint64_t word = sim_random();
        size_t part = count < 8 ? count : 8;
        memcpy(bytes, &word, part);
        bytes += part;
        count -= part;
    }
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    if (!active) return syscall(SYS_getrandom, bytes, count, flags);
    fill(bytes, count);
    return (ssize_t)count;
}

static int random_bytes(unsigned char *bytes, int count) { fill(bytes, (size_t)count); return 1; }
static int random_status(void) { return 1; }
static int random_add(const void *bytes, int count, double entropy) { (void)bytes; (void)count; (void)entropy; return 1; }
static int random_seed(const void *bytes, int count) { (void)bytes; (void)count; return 1; }

void kernel_take_random(void) {
    static const RAND_METHOD method = {random_seed, random_bytes, NULL, random_add, random_bytes, random_status};
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    RAND_set_rand_method(&method);
}

/* Time. */

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!active || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
        return (int)syscall(SYS_clock_gettime, clock, time);
    uint64_t now = sim_clock(clock);
    time->tv_sec = (time_t)(now / 1000000000u);
    time->tv_nsec = (long)(now % 1000000000u);
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* Sockets. */

int socket(int family, int type, int protocol) {
    if (!active) return (int)syscall(SYS_socket, family, type, protocol);
    return (int)done(sim_socket(family, type & 0xF));
}
int bind(int fd, const struct sockaddr *name, socklen_t length) {
    if (!is_ours(fd)) return (int)syscall(SYS_bind, fd, name, length);
    if (name->sa_family == AF_UNIX) return (int)done(sim_bind_path(fd, ((const struct sockaddr_un *)name)->sun_path));
    return (int)done(sim_bind(fd, name, length));
}
int listen(int fd, int backlog) {
    if (!is_ours(fd)) return (int)syscall(SYS_listen, fd, backlog);
    return (int)done(sim_listen(fd));
}
int connect(int fd, const struct sockaddr *name, socklen_t length) {
    if (!is_ours(fd)) return (int)syscall(SYS_connect, fd, name, length);
    if (name->sa_family == AF_UNIX) return (int)done(sim_connect_path(fd, ((const struct sockaddr_un *)name)->sun_path));
    return (int)done(sim_connect(fd, name, length));
}
int accept4(int fd, struct sockaddr *name, socklen_t *length, int flags) {
    if (!is_ours(fd)) return (int)syscall(SYS_accept4, fd, name, length, flags);
    return (int)done(sim_accept(fd, name, length));
}
ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    if (!is_ours(fd)) return syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
    return done(sim_send(fd, bytes, (long)count));
}
ssize_t recv(int fd, void *bytes, size_t count, int flags) {
    if (!is_ours(fd)) return syscall(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL);
    return done(sim_recv(fd, bytes, (long)count));
}
ssize_t sendto(int fd, const void *bytes, size_t count, int flags, const struct sockaddr *name, socklen_t length) {
    if (!is_ours(fd)) return syscall(SYS_sendto, fd, bytes, count, flags, name, length);
    return done(sim_sendto(fd, bytes, (long)count, name, length));
}
ssize_t recvfrom(
    int fd, void *restrict bytes, size_t count, int flags, struct sockaddr *restrict name, socklen_t *restrict length) {
    if (!is_ours(fd)) return syscall(SYS_recvfrom, fd, bytes, count, flags, name, length);
    return done(sim_recvfrom(fd, bytes, (long)count, name, length));
}
int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout) {
    if (!is_ours(fd)) return (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
    unsigned got = 0;
    while (got < count) {
        struct msghdr *header = &messages[got].msg_hdr;
        long length = sim_recvfrom(
            fd, header->msg_iov[0].iov_base, (long)header->msg_iov[0].iov_len, header->msg_name, &header->msg_namelen);
        if (length == -EAGAIN) break;
        if (length < 0) return got ? (int)got : (int)done(length);
        header->msg_flags = 0;
        header->msg_controllen = 0;
        messages[got].msg_len = (unsigned)length;
        got++;
    }
    return got ? (int)got : (int)done(-EAGAIN);
}
ssize_t recvmsg(int fd, struct msghdr *header, int flags) {
    if (!is_ours(fd)) return syscall(SYS_recvmsg, fd, header, flags);
    if (!(flags & MSG_ERRQUEUE)) return done(-EBADF);
    long length = sim_next_error(fd, header->msg_iov[0].iov_base, (long)header->msg_iov[0].iov_len);
    if (length < 0) return done(length);
    struct sock_extended_err error = {.ee_errno = ECONNREFUSED, .ee_origin = SO_EE_ORIGIN_ICMP};
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    control->cmsg_level = IPPROTO_IP;
    control->cmsg_type = IP_RECVERR;
    control->cmsg_len = CMSG_LEN(sizeof error);
    memcpy(CMSG_DATA(control), &error, sizeof error);
    header->msg_controllen = CMSG_SPACE(sizeof error);
    return length;
}
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    if (!is_ours(fd)) return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
    for (unsigned index = 0; index < count; index++) {
        struct msghdr *header = &messages[index].msg_hdr;
        long sent = sim_sendto(
            fd, header->msg_iov[0].iov_base, (long)header->msg_iov[0].iov_len, header->msg_name, header->msg_namelen);
        if (sent < 0) return index ? (int)index : (int)done(sent);
        messages[index].msg_len = (unsigned)sent;
    }
    return (int)count;
}
int shutdown(int fd, int how) {
    if (!is_ours(fd)) return (int)syscall(SYS_shutdown, fd, how);
    return (int)done(sim_shutdown(fd));
}
int getsockname(int fd, struct sockaddr *restrict name, socklen_t *restrict length) {
    if (!is_ours(fd)) return (int)syscall(SYS_getsockname, fd, name, length);
    return (int)done(sim_getsockname(fd, name, length));
}
int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict length) {
    if (!is_ours(fd)) return (int)syscall(SYS_getsockopt, fd, level, option, value, length);
    long result = sim_getsockopt(fd, level, option);
    if (result < 0) return (int)done(result);
    *(int *)value = (int)result;
    *length = sizeof(int);
    return 0;
}
int setsockopt(int fd, int level, int option, const void *value, socklen_t length) {
    if (!is_ours(fd)) return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
    return 0;
}
int getifaddrs(struct ifaddrs **list) { *list = NULL; return 0; }
void freeifaddrs(struct ifaddrs *list) { (void)list; }

/* Descriptors. */

int close(int fd) {
    if (!is_ours(fd)) return (int)syscall(SYS_close, fd);
    return (int)done(sim_close(fd));
}
ssize_t read(int fd, void *bytes, size_t count) {
    if (!is_ours(fd)) return syscall(SYS_read, fd, bytes, count);
    return done(sim_read(fd, bytes, (long)count));
}
ssize_t write(int fd, const void *bytes, size_t count) {
    if (!is_ours(fd)) return syscall(SYS_write, fd, bytes, count);
    return done(sim_write(fd, bytes, (long)count));
}
int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    long argument = va_arg(list, long);
    va_end(list);
    if (!is_ours(fd)) return (int)syscall(SYS_fcntl, fd, command, argument);
    return 0;
}
int epoll_create1(int flags) {
    if (!active) return (int)syscall(SYS_epoll_create1, flags);
    return (int)done(sim_epoll_create());
}
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    if (!is_ours(epoll)) return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
    return (int)done(sim_epoll_ctl(epoll, operation, fd, event ? event->events : 0, event ? event->data.u64 : 0));
}
/* Nobody else can do anything while the one thread waits: nothing there is nothing to come. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    if (!is_ours(epoll)) return (int)syscall(SYS_epoll_wait, epoll, events, most, timeout);
    int count = 0;
    long place = 0;
    while (count < most) {
        uint32_t what;
        uint64_t token;
        place = sim_epoll_next(epoll, (int)place, &what, &token);
        if (place <= 0) break;
        events[count].events = what;
        events[count].data.u64 = token;
        count++;
    }
    return count;
}
/* The one thread cannot wait: what is handed to a queue next runs when there is something. */
int poll(struct pollfd *polls, nfds_t count, int timeout) {
    if (count != 2 || !is_ours(polls[0].fd)) return (int)syscall(SYS_poll, polls, count, timeout);
    return (int)sim_poll(polls[0].fd, polls[1].fd);
}
int eventfd(unsigned value, int flags) {
    if (!active) return (int)syscall(SYS_eventfd2, value, flags);
    return (int)done(sim_eventfd());
}
int timerfd_create(int clock, int flags) {
    if (!active) return (int)syscall(SYS_timerfd_create, clock, flags);
    return (int)done(sim_timerfd_create());
}
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    if (!is_ours(fd)) return (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
    return (int)done(sim_timerfd_settime(
        fd, (uint64_t)new->it_value.tv_sec * 1000000000u + (uint64_t)new->it_value.tv_nsec));
}

/* Files: nothing of this machine's is seen. */

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    int mode = flags & O_CREAT ? va_arg(list, int) : 0;
    va_end(list);
    if (!active) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    return (int)done(sim_open(path, flags));
}
static int filled(long result, struct stat *status, uint32_t mode, uint64_t size, uint64_t number) {
    if (result < 0) return (int)done(result);
    memset(status, 0, sizeof *status);
    status->st_mode = mode;
    status->st_size = (off_t)size;
    status->st_ino = number;
    status->st_dev = 1;
    return 0;
}
int stat(const char *restrict path, struct stat *restrict status) {
    if (!active) return (int)syscall(SYS_stat, path, status);
    uint32_t mode = 0;
    uint64_t size = 0, number = 0;
    long result = sim_stat(path, &mode, &size, &number);
    return filled(result, status, mode, size, number);
}
int lstat(const char *restrict path, struct stat *restrict status) { return stat(path, status); }
int fstat(int fd, struct stat *status) {
    if (!is_ours(fd)) return (int)syscall(SYS_fstat, fd, status);
    uint32_t mode = 0;
    uint64_t size = 0, number = 0;
    long result = sim_fstat(fd, &mode, &size, &number);
    return filled(result, status, mode, size, number);
}
int access(const char *path, int mode) {
    if (!active) return (int)syscall(SYS_access, path, mode);
    struct stat status;
    return stat(path, &status);
}
int chmod(const char *path, mode_t mode) { return active ? 0 : (int)syscall(SYS_chmod, path, mode); }
int mkdir(const char *path, mode_t mode) {
    if (!active) return (int)syscall(SYS_mkdir, path, mode);
    return (int)done(-EEXIST);
}
int fchmod(int fd, mode_t mode) { return is_ours(fd) ? 0 : (int)syscall(SYS_fchmod, fd, mode); }
int flock(int fd, int operation) { return is_ours(fd) ? 0 : (int)syscall(SYS_flock, fd, operation); }
int fsync(int fd) { return is_ours(fd) ? 0 : (int)syscall(SYS_fsync, fd); }
int ftruncate(int fd, off_t length) {
    if (!is_ours(fd)) return (int)syscall(SYS_ftruncate, fd, length);
    return (int)done(sim_truncate(fd));
}
ssize_t pread(int fd, void *bytes, size_t count, off_t offset) {
    if (!is_ours(fd)) return syscall(SYS_pread64, fd, bytes, count, offset);
    return done(sim_pread(fd, bytes, (long)count, offset));
}
int rename(const char *from, const char *to) {
    if (!active) return (int)syscall(SYS_rename, from, to);
    return (int)done(sim_rename(from, to));
}
int unlink(const char *path) {
    if (!active) return (int)syscall(SYS_unlink, path);
    return (int)done(sim_unlink(path));
}
ssize_t readlink(const char *restrict path, char *restrict target, size_t size) {
    if (!active) return syscall(SYS_readlink, path, target, size);
    return done(-EINVAL);
}
int inotify_init1(int flags) {
    if (!active) return (int)syscall(SYS_inotify_init1, flags);
    return (int)done(sim_inotify());
}
int inotify_add_watch(int fd, const char *path, uint32_t mask) {
    if (!is_ours(fd)) return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
    return (int)done(sim_inotify_add(fd, path, mask));
}
int inotify_rm_watch(int fd, int watch) {
    if (!is_ours(fd)) return (int)syscall(SYS_inotify_rm_watch, fd, watch);
    return (int)done(sim_inotify_remove(fd, watch));
}
