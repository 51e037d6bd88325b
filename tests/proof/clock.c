/* Preloaded, it moves the clock on the wall for a process and all that it starts, and no other one.
 *
 * The file that PROOF_CLOCK names holds one int64: by how many seconds. It may change at any time.
 * Clocks that only measure how long something takes are left alone, as a machine's are when its
 * time is set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PROOF_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED) shift = found;
}

static int64_t seconds(void) { return shift ? *shift : 0; }

int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

/* The kernel waits by its own clock. A time of the clock that only measures is far less. */
static struct timespec theirs(const struct timespec *until) {
    struct timespec found = *until;
    if (found.tv_sec > 1000000000) found.tv_sec -= seconds();
    return found;
}

int pthread_cond_timedwait(pthread_cond_t *restrict what, pthread_mutex_t *restrict lock,
                           const struct timespec *restrict until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) {
        /* There is an older one, of before 2003, which would be found first. */
        void *found = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        real = found ? found : dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    }
    struct timespec at = theirs(until);
    return real(what, lock, &at);
}

int cnd_timedwait(cnd_t *restrict what, mtx_t *restrict lock,
                  const struct timespec *restrict until) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "cnd_timedwait");
    struct timespec at = theirs(until);
    return real(what, lock, &at);
}
