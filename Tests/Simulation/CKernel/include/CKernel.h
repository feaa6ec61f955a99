/* The system calls of the program, taken away from the C library: each function of CKernel.c has the name of one of its, and
   asks the simulated kernel (Tests/Simulation/Sources) once ``kernel_begin()`` was called. */
#ifndef CKERNEL_H
#define CKERNEL_H

#include <stdint.h>

/* From now on nothing reaches the kernel of this machine but what has a descriptor of its own there. */
void kernel_begin(void);
/* What this machine's own clock says, in nanoseconds. */
uint64_t kernel_real_nanoseconds(void);
/* Octets that malloc(3) has given out. */
uint64_t kernel_allocated(void);
/* OpenSSL takes its random octets from the simulated kernel too. */
void kernel_take_random(void);
/* Begins the program anew with a variable in its environment that is read before main; returns if it is set already. */
void kernel_restart_with(const char *name, const char *value, char *const *arguments);
/* fork(2), without output if it is to be quiet; the child ends with its parent. */
int kernel_fork(int is_quiet);
/* The child's exit status; negative: the signal that has ended it. */
int kernel_wait(int child);
/* A number, 0 at first, that children write and their parent reads. */
uint64_t *kernel_shared(void);
/* Ends the process in so many seconds. */
void kernel_alarm(unsigned seconds);

#endif
