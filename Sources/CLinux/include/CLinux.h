/* What Swift's Glibc module does not show: epoll, eventfd, timerfd, getrandom, rtnetlink (headers it leaves out), and
   recvmmsg, sendmmsg, accept4 and packet information (declared by glibc only under _GNU_SOURCE, which an importer
   cannot set). Only system calls and their layouts; every decision is made in Swift. */
#ifndef CLINUX_H
#define CLINUX_H

#include <linux/rtnetlink.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

/* epoll_ctl without the union. */
static inline int clinux_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return epoll_ctl(epoll, operation, fd, &event);
}

/* struct mmsghdr by another name; CLinux.c asserts that the layouts are one. */
struct clinux_message {
    struct msghdr header;
    unsigned int length;
};

int clinux_recvmmsg(int fd, struct clinux_message *_Nonnull messages, unsigned int count, int flags);
int clinux_sendmmsg(int fd, struct clinux_message *_Nonnull messages, unsigned int count, int flags);

/* Accepts a connection, nonblocking and close-on-exec. */
int clinux_accept(int fd, void *_Nonnull name, socklen_t *_Nonnull name_length);

/* Room for one in6_pktinfo or in_pktinfo control message, whichever is larger, aligned for the next one. */
enum { clinux_control_size = 40 };

/* The address a datagram was sent to: 4 or 16 octets into `address`; returns how many, 0 if the message does not say.
   `interface` gets the index of the interface that an IPv6 datagram came by, else 0. */
int clinux_local_address(
    const struct msghdr *_Nonnull message, uint8_t *_Nonnull address, uint32_t *_Nonnull interface);

/* Makes `message` leave from `address` (4 or 16 octets), and by `interface` if that is not 0: else routing chooses the way
   out. IPv4 has no `interface`. Needs clinux_control_size octets at `control`, aligned to 8. */
void clinux_set_local_address(
    struct msghdr *_Nonnull message, void *_Nonnull control, const uint8_t *_Nonnull address, int octets,
    uint32_t interface);

/* Takes the oldest error from the queue of a socket with IP_RECVERR or IPV6_RECVERR: its errno, 0 if there is none.
   `quoted` gets the first octets of the datagram's payload that it quotes, `count` says how many: 0 to 2. */
int clinux_next_error(int fd, uint8_t *_Nonnull quoted, int *_Nonnull count);

/* The number of the processor that this thread runs on. */
int clinux_processor(void);

/* malloc(3) keeps no heap but the first from now on. */
static inline void clinux_share_heap(void) { mallopt(M_ARENA_MAX, 1); }

/* malloc_trim(3): free memory goes back to the system. */
static inline void clinux_trim_heap(void) { malloc_trim(0); }

/* prctl(2) is variadic, which Swift does not import. No core dump from now on, and no ptrace(2) without its capability. */
static inline void clinux_forbid_dumps(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

/* The variables as the program was given them, `NAME=VALUE`, a null pointer last; Swift refuses the mutable global. */
char *_Nullable const *_Nonnull clinux_environment(void);

/* The words that the program was called with, its own name first, a null pointer last: those of main, which Swift reads from
   /proc/self/cmdline, so that it has none where /proc is missing. */
char *_Nullable const *_Nonnull clinux_arguments(void);

#endif
