#define _GNU_SOURCE
#include "CLinux.h"

#include <linux/errqueue.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct clinux_message) == sizeof(struct mmsghdr), "layout of mmsghdr");
_Static_assert(offsetof(struct clinux_message, header) == offsetof(struct mmsghdr, msg_hdr), "layout of mmsghdr");
_Static_assert(offsetof(struct clinux_message, length) == offsetof(struct mmsghdr, msg_len), "layout of mmsghdr");
_Static_assert(CMSG_SPACE(sizeof(struct in6_pktinfo)) <= clinux_control_size, "room for IPV6_PKTINFO");
_Static_assert(CMSG_SPACE(sizeof(struct in_pktinfo)) <= clinux_control_size, "room for IP_PKTINFO");

int clinux_recvmmsg(int fd, struct clinux_message *messages, unsigned int count, int flags) {
    return recvmmsg(fd, (struct mmsghdr *)messages, count, flags, NULL);
}

int clinux_sendmmsg(int fd, struct clinux_message *messages, unsigned int count, int flags) {
    return sendmmsg(fd, (struct mmsghdr *)messages, count, flags);
}

int clinux_accept(int fd, void *name, socklen_t *name_length) {
    return accept4(fd, name, name_length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clinux_local_address(const struct msghdr *message, uint8_t *address, uint32_t *interface) {
    *interface = 0;
    struct msghdr *header = (struct msghdr *)message;
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control)) {
        if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO
            && control->cmsg_len >= CMSG_LEN(sizeof(struct in_pktinfo))) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(control), sizeof info);
            /* ipi_spec_dst, not ipi_addr: a broadcast address cannot be sent from. */
            memcpy(address, &info.ipi_spec_dst, 4);
            return 4;
        }
        if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO
            && control->cmsg_len >= CMSG_LEN(sizeof(struct in6_pktinfo))) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(control), sizeof info);
            memcpy(address, &info.ipi6_addr, 16);
            *interface = info.ipi6_ifindex;
            return 16;
        }
    }
    return 0;
}

void clinux_set_local_address(
    struct msghdr *message, void *control, const uint8_t *address, int octets, uint32_t interface) {
    struct cmsghdr *header = control;
    if (octets == 4) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, address, 4);
        header->cmsg_level = IPPROTO_IP;
        header->cmsg_type = IP_PKTINFO;
        header->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(header), &info, sizeof info);
        message->msg_controllen = CMSG_SPACE(sizeof info);
    } else {
        struct in6_pktinfo info = {0};
        memcpy(&info.ipi6_addr, address, 16);
        info.ipi6_ifindex = interface;
        header->cmsg_level = IPPROTO_IPV6;
        header->cmsg_type = IPV6_PKTINFO;
        header->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(header), &info, sizeof info);
        message->msg_controllen = CMSG_SPACE(sizeof info);
    }
    message->msg_control = control;
}

int clinux_next_error(int fd, uint8_t *quoted, int *count) {
    _Alignas(struct cmsghdr) uint8_t controls[256];
    struct iovec room = {.iov_base = quoted, .iov_len = 2};
    struct msghdr message = {
        .msg_iov = &room, .msg_iovlen = 1, .msg_control = controls, .msg_controllen = sizeof controls};
    ssize_t length = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (length < 0) return 0;
    *count = (int)length;
    for (struct cmsghdr *control = CMSG_FIRSTHDR(&message); control; control = CMSG_NXTHDR(&message, control)) {
        int is_error = (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR)
            || (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR);
        if (is_error && control->cmsg_len >= CMSG_LEN(sizeof(struct sock_extended_err))) {
            struct sock_extended_err error;
            memcpy(&error, CMSG_DATA(control), sizeof error);
            return (int)error.ee_errno;
        }
    }
    return 0;
}

char *const *clinux_environment(void) {
    return environ;
}

static char *const *arguments;

/* The C library calls constructors with what main is called with. */
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
    (void)count;
    arguments = values;
}

char *const *clinux_arguments(void) {
    return arguments;
}

int clinux_processor(void) { return sched_getcpu(); }
