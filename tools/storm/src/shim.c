/* Loaded into a process (LD_PRELOAD) to end it, or to fail it, at an exact system call.
 *
 * STORM_CALL   which call: write, fsync, rename, link, unlink, truncate
 * STORM_AT     at which one, counted from 1
 * STORM_MODE   kill: SIGKILL in place of the call; full: this one and the next STORM_MANY fail with
 *              ENOSPC, as on a full disk
 *
 * Only calls on regular files count: sockets and pipes belong to other parts of the storm.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static int chosen(const char *name) {
    const char *call = getenv("STORM_CALL");
    return call && strcmp(call, name) == 0;
}

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

/* Whether this call is to fail. */
static int strike(const char *name) {
    if (!chosen(name)) return 0;
    long call = atomic_fetch_add(&calls, 1) + 1, at = number("STORM_AT");
    const char *mode = getenv("STORM_MODE");
    if (mode && strcmp(mode, "full") == 0) {
        if (call < at || call > at + number("STORM_MANY")) return 0;
        errno = ENOSPC;
        return 1;
    }
    if (call == at) kill(getpid(), SIGKILL);
    return 0;
}

static int is_file(int fd) {
    struct stat found;
    return fd > 2 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) {
    if (chosen("write") && is_file(fd) && strike("write")) return -1;
    return NEXT(write)(fd, bytes, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    if (chosen("write") && is_file(fd) && strike("write")) return -1;
    return NEXT(pwrite64)(fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    if (chosen("write") && is_file(fd) && strike("write")) return -1;
    return NEXT(pwrite)(fd, bytes, count, at);
}

int fsync(int fd) {
    if (strike("fsync")) return -1;
    return NEXT(fsync)(fd);
}

int fdatasync(int fd) {
    if (strike("fsync")) return -1;
    return NEXT(fdatasync)(fd);
}

int rename(const char *from, const char *to) {
    if (strike("rename")) return -1;
    return NEXT(rename)(from, to);
}

int link(const char *from, const char *to) {
    if (strike("link")) return -1;
    return NEXT(link)(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    if (strike("link")) return -1;
    return NEXT(linkat)(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path) {
    if (strike("unlink")) return -1;
    return NEXT(unlink)(path);
}

int ftruncate64(int fd, off64_t length) {
    if (strike("truncate")) return -1;
    return NEXT(ftruncate64)(fd, length);
}
