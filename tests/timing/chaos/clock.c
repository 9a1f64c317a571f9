/* Preloaded into a node: its clocks jump by as many nanoseconds as a file says, first those of the
   calendar, then those of the monotonic clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int (*real)(clockid_t, struct timespec *);
static volatile int64_t *jumps;

__attribute__((constructor)) static void begin(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *at = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
        jumps = at == MAP_FAILED ? 0 : at;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real)
        begin();
    int result = real(clock, now);
    if (result || !jumps)
        return result;
    int64_t by = clock == CLOCK_REALTIME ? jumps[0] : clock == CLOCK_MONOTONIC ? jumps[1] : 0;
    int64_t all = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + by;
    now->tv_sec = all / 1000000000;
    now->tv_nsec = all % 1000000000;
    return 0;
}
