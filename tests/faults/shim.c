// Preloaded into the program (LD_PRELOAD) by the drivers of tests/faults. For files below one folder it
// - logs each change in the order in which it happened, with its bytes, and each fsync with its begin and its end, so
// that
//   power.py can build the folder as it may be after a power failure at any moment;
// - lets calls fail as the driver says, who writes the rules into a small file that both map.
//
// Environment: FAULTS_FOLDER (absolute, without links), FAULTS_LOG (optional), FAULTS_CONTROL (optional),
// FAULTS_SKIP_SYNC (optional: fsync is logged but not done, since a model needs no slow disk), FAULTS_SYNC_MS
// (optional: each fsync takes at least this long, as on a disk that others use). Only the C library's calls are seen,
// not mapped memory: tests/faults/power.py compares the replayed log with the folder.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../preload.h"

// --- rules: the layout is that of Rules in faults.py
// ---------------------------------------------------------------------
enum { op_open = 1, op_write = 2, op_sync = 4, op_resize = 8, op_name = 16, op_map = 32, op_read = 64 };

struct control {
  _Atomic uint32_t active;
  uint32_t operations;  // op_ bits
  int32_t error;
  uint32_t only_growth;       // only writes past the file's end and new names fail, as on a full disk
  _Atomic int64_t countdown;  // n > 0: the n-th matching call fails, then the rule is over; 0: every one
  uint32_t one_in;            // n > 0: each matching call fails with probability 1/n
  uint32_t half;              // a write that fails writes half of its bytes first
  _Atomic uint64_t seen;
  _Atomic uint64_t injected;
  char pattern[192];  // fnmatch on the path below the folder; empty: all
  char last[256];     // the last call that failed, and on what
};

static struct control* control;
static char folder[PATH_MAX];
static size_t folder_length;
static int log_fd = -1;
static int skip_sync;
static int sync_ms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// --- what is known of open descriptors
// -----------------------------------------------------------------------------------
enum { most_fds = 4096 };
static struct {
  uint64_t file;  // 0: not below the folder
  char path[256];
  int append;
} fds[most_fds];

// Inode numbers are reused, so files have numbers of their own.
static struct known {
  ino_t inode;
  uint64_t file;
} * known;
static size_t known_count, known_size;
static uint64_t last_file;

static uint64_t file_of(ino_t inode, int is_new) {
  for (size_t i = known_count; i-- > 0;) {
    if (known[i].inode != inode) continue;
    if (is_new) known[i].file = ++last_file;
    return known[i].file;
  }
  if (known_count == known_size) known = realloc(known, (known_size = known_size * 2 + 64) * sizeof *known);
  known[known_count].inode = inode;
  known[known_count].file = ++last_file;
  return known[known_count++].file;
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) {
  const char* given = getenv("FAULTS_FOLDER");
  if (!given || strlen(given) >= sizeof folder) return;
  strcpy(folder, given);
  folder_length = strlen(folder);
  skip_sync = getenv("FAULTS_SKIP_SYNC") != NULL;
  const char* slow = getenv("FAULTS_SYNC_MS");
  if (slow) sync_ms = atoi(slow);
  const char* log = getenv("FAULTS_LOG");
  if (log) log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const char* rules = getenv("FAULTS_CONTROL");
  const int fd = rules ? (int)syscall(SYS_openat, AT_FDCWD, rules, O_RDWR | O_CLOEXEC) : -1;
  if (fd >= 0) {
    void* at = (void*)syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) control = at;
    syscall(SYS_close, fd);
  }
  pthread_atfork(before_fork, after_fork, after_fork);
}

// --- the log: the layout is that of Log in power.py
// ----------------------------------------------------------------------
struct entry {
  uint32_t length;  // of all, with the text and the bytes behind it
  char kind;  // c create, o open, w write, t truncate, g grow, f/F fsync begins/ended, u unlink, r rename, x exchange,
              // m mkdir, d rmdir, l link
  char pad[3];
  int64_t at_ns;
  uint64_t file;
  int64_t offset;  // t, g: the size
  uint32_t thread;
  uint16_t path_length, second_length;
};

static void write_log(char kind, uint64_t file, int64_t offset, const char* path, const char* second,
                      const struct iovec* parts, int count) {
  if (log_fd < 0) return;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct entry entry = {.kind = kind,
                        .at_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                        .file = file,
                        .offset = offset,
                        .thread = (uint32_t)syscall(SYS_gettid),
                        .path_length = (uint16_t)(path ? strlen(path) : 0),
                        .second_length = (uint16_t)(second ? strlen(second) : 0)};
  struct iovec all[3 + 64];
  int n = 0;
  all[n++] = (struct iovec){&entry, sizeof entry};
  all[n++] = (struct iovec){(void*)(path ? path : ""), entry.path_length};
  all[n++] = (struct iovec){(void*)(second ? second : ""), entry.second_length};
  for (int i = 0; i < count && n < 3 + 64; ++i) all[n++] = parts[i];
  size_t length = 0;
  for (int i = 0; i < n; ++i) length += all[i].iov_len;
  entry.length = (uint32_t)length;
  if (syscall(SYS_writev, log_fd, all, n) != (long)length) abort();
}

// The path below the folder, or null. `path` may be relative to `at`.
static const char* below(int at, const char* path, char* to) {
  if (!folder_length || !path) return NULL;
  char whole[PATH_MAX];
  if (path[0] != '/') {
    char link[64];
    if (at == AT_FDCWD) {
      strcpy(link, "/proc/self/cwd");
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    }
    const long n = syscall(SYS_readlinkat, AT_FDCWD, link, whole, sizeof whole - 1);
    if (n < 0 || (size_t)n + 1 + strlen(path) >= sizeof whole) return NULL;
    whole[n] = '/';
    strcpy(whole + n + 1, path);
    path = whole;
  }
  if (strncmp(path, folder, folder_length) != 0 || (path[folder_length] && path[folder_length] != '/')) return NULL;
  // "./" and "//" are left out, so that a file has one name.
  size_t n = 0;
  for (const char* part = path + folder_length; *part;) {
    const size_t length = strcspn(part, "/");
    if (length > 0 && !(length == 1 && part[0] == '.')) {
      if (n + length + 2 > 256) return NULL;
      if (n > 0) to[n++] = '/';
      memcpy(to + n, part, length);
      n += length;
    }
    part += length + (part[length] == '/');
  }
  to[n] = 0;
  return to;
}

// Whether this call is to fail; errno is then set.
static int fails(uint32_t operation, const char* name, const char* path, int growth) {
  if (!control || !atomic_load(&control->active) || !(control->operations & operation)) return 0;
  if (control->only_growth && !growth) return 0;
  if (control->pattern[0] && fnmatch(control->pattern, path, 0) != 0) return 0;
  atomic_fetch_add(&control->seen, 1);
  const int64_t left = atomic_load(&control->countdown);
  if (left > 0) {
    if (atomic_fetch_sub(&control->countdown, 1) != 1) return 0;
    atomic_store(&control->active, 0);
  } else if (left < 0 || (control->one_in && random() % control->one_in != 0)) {
    return 0;
  }
  snprintf(control->last, sizeof control->last, "%s %s", name, path);
  atomic_fetch_add(&control->injected, 1);
  errno = control->error;
  return 1;
}

static int tracked(int fd) {
  return fd >= 0 && fd < most_fds && fds[fd].file != 0;
}

// --- opening
// -------------------------------------------------------------------------------------------------------------
static void remember(int fd, const char* path, int flags, int existed) {
  struct stat status;
  if (fd < 0 || fd >= most_fds || fstat(fd, &status) != 0) return;
  const uint64_t file = file_of(status.st_ino, !existed);
  fds[fd].file = file;
  fds[fd].append = (flags & O_APPEND) != 0;
  strcpy(fds[fd].path, path);
  write_log(existed ? 'o' : 'c', file, 0, path, NULL, NULL, 0);
  if (existed && (flags & O_TRUNC) && S_ISREG(status.st_mode)) write_log('t', file, 0, path, NULL, NULL, 0);
}

static int open_file(int at, const char* path, int flags, mode_t mode) {
  char name[256];
  const char* inside = below(at, path, name);
  if (!inside) {
    const int other = (int)syscall(SYS_openat, at, path, flags, mode);
    if (tracked(other)) fds[other].file = 0;
    return other;
  }
  struct stat status;
  pthread_mutex_lock(&lock);
  const int existed = fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
  int fd = -1;
  if (!fails(op_open, "open", inside, !existed && (flags & O_CREAT))) {
    fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && fd < most_fds) fds[fd].file = 0;
    if (fd >= 0) remember(fd, inside, flags, existed);
  }
  const int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
  return fd;
}

static void copy_fd(int from, int to) {
  if (to < 0 || to >= most_fds) return;
  pthread_mutex_lock(&lock);
  if (tracked(from)) {
    fds[to] = fds[from];
  } else {
    fds[to].file = 0;
  }
  pthread_mutex_unlock(&lock);
}
int dup(int from) {
  const int to = (int)syscall(SYS_dup, from);
  copy_fd(from, to);
  return to;
}
int dup2(int from, int to) {
  REAL(int, "dup2", int, int);
  const int done = real(from, to);
  if (done >= 0) copy_fd(from, done);
  return done;
}
int dup3(int from, int to, int flags) {
  const int done = (int)syscall(SYS_dup3, from, to, flags);
  if (done >= 0) copy_fd(from, done);
  return done;
}
int close(int fd) {
  if (tracked(fd)) {
    pthread_mutex_lock(&lock);
    fds[fd].file = 0;
    pthread_mutex_unlock(&lock);
  }
  REAL(int, "close", int);
  return real(fd);
}

int closedir(DIR* folder_stream) {
  REAL(int, "closedir", DIR*);
  const int fd = dirfd(folder_stream);
  if (tracked(fd)) fds[fd].file = 0;
  return real(folder_stream);
}

// C streams write past this file, so their files are logged whole when they are closed.
FILE* fopen(const char* path, const char* mode) {
  REAL(FILE*, "fopen", const char*, const char*);
  char name[256];
  const char* inside = below(AT_FDCWD, path, name);
  if (!inside || !strpbrk(mode, "wa+")) return real(path, mode);
  struct stat status;
  pthread_mutex_lock(&lock);
  const int existed = lstat(path, &status) == 0;
  FILE* file = fails(op_open, "fopen", inside, !existed) ? NULL : real(path, mode);
  if (file) remember(fileno(file), inside, mode[0] == 'w' ? O_TRUNC : 0, existed);
  const int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
  return file;
}
FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}
int fclose(FILE* file) {
  REAL(int, "fclose", FILE*);
  const int fd = fileno(file);
  if (tracked(fd)) {
    fflush(file);
    struct stat status;
    pthread_mutex_lock(&lock);
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
      void* bytes = (void*)syscall(SYS_mmap, NULL, status.st_size, PROT_READ, MAP_SHARED, fd, 0);
      const struct iovec part = {bytes, (size_t)status.st_size};
      if (bytes != MAP_FAILED) {
        write_log('w', fds[fd].file, 0, NULL, NULL, &part, 1);
        munmap(bytes, (size_t)status.st_size);
      }
    }
    fds[fd].file = 0;
    pthread_mutex_unlock(&lock);
  }
  return real(file);
}

// --- bytes
// ---------------------------------------------------------------------------------------------------------------
static ssize_t write_parts(int fd, const struct iovec* parts, int count, off_t offset, int at_offset,
                           const char* name) {
  pthread_mutex_lock(&lock);
  struct stat status = {0};
  fstat(fd, &status);
  if (!at_offset) offset = fds[fd].append ? status.st_size : lseek(fd, 0, SEEK_CUR);
  size_t wanted = 0;
  for (int i = 0; i < count; ++i) wanted += parts[i].iov_len;
  struct iovec shorter = {count > 0 ? parts[0].iov_base : NULL, count > 0 ? parts[0].iov_len / 2 : 0};
  ssize_t done = -1;
  int error = 0;
  if (fails(op_write, name, fds[fd].path, offset + (off_t)wanted > status.st_size)) {
    error = errno;
    if (control->half && shorter.iov_len > 0) {
      parts = &shorter;
      count = 1;
      error = 0;
    }
  }
  if (!error) {
    done = at_offset ? syscall(SYS_pwritev, fd, parts, count, (unsigned long)offset, 0UL)
                     : syscall(SYS_writev, fd, parts, count);
    error = errno;
  }
  size_t left = done > 0 ? (size_t)done : 0;
  struct iovec written[64];
  int n = 0;
  for (int i = 0; i < count && left > 0 && n < 64; ++i, ++n) {
    written[n] = parts[i];
    if (written[n].iov_len > left) written[n].iov_len = left;
    left -= written[n].iov_len;
  }
  if (n > 0) write_log('w', fds[fd].file, offset, NULL, NULL, written, n);
  pthread_mutex_unlock(&lock);
  errno = error;
  return done;
}

ssize_t write(int fd, const void* bytes, size_t length) {
  if (!tracked(fd)) return syscall(SYS_write, fd, bytes, length);
  const struct iovec part = {(void*)bytes, length};
  return write_parts(fd, &part, 1, 0, 0, "write");
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  if (!tracked(fd)) return syscall(SYS_writev, fd, parts, count);
  return write_parts(fd, parts, count, 0, 0, "writev");
}
ssize_t pwrite64(int fd, const void* bytes, size_t length, off64_t offset) {
  if (!tracked(fd)) return syscall(SYS_pwrite64, fd, bytes, length, offset);
  const struct iovec part = {(void*)bytes, length};
  return write_parts(fd, &part, 1, offset, 1, "pwrite");
}
ssize_t pwrite(int fd, const void* bytes, size_t length, off_t offset) {
  return pwrite64(fd, bytes, length, offset);
}
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  if (!tracked(fd)) return syscall(SYS_pwritev, fd, parts, count, (unsigned long)offset, 0UL);
  return write_parts(fd, parts, count, offset, 1, "pwritev");
}
ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t offset) {
  return pwritev(fd, parts, count, offset);
}
// Copies inside the kernel would not be seen; callers then copy by hand.
ssize_t copy_file_range(int from, off64_t* in, int to, off64_t* out, size_t length, unsigned flags) {
  if (!tracked(to)) return syscall(SYS_copy_file_range, from, in, to, out, length, flags);
  errno = EXDEV;
  return -1;
}
ssize_t sendfile(int to, int from, off_t* offset, size_t length) {
  if (!tracked(to)) return syscall(SYS_sendfile, to, from, offset, length);
  errno = EINVAL;
  return -1;
}
ssize_t sendfile64(int to, int from, off64_t* offset, size_t length) {
  return sendfile(to, from, offset, length);
}

ssize_t read(int fd, void* bytes, size_t length) {
  if (tracked(fd) && fails(op_read, "read", fds[fd].path, 0)) return -1;
  REAL(ssize_t, "read", int, void*, size_t);
  return real(fd, bytes, length);
}
ssize_t pread64(int fd, void* bytes, size_t length, off64_t offset) {
  if (tracked(fd) && fails(op_read, "pread", fds[fd].path, 0)) return -1;
  return syscall(SYS_pread64, fd, bytes, length, offset);
}
ssize_t pread(int fd, void* bytes, size_t length, off_t offset) {
  return pread64(fd, bytes, length, offset);
}
void* mmap64(void* at, size_t length, int protection, int flags, int fd, off64_t offset) {
  if (tracked(fd) && fails(op_map, "mmap", fds[fd].path, 0)) return MAP_FAILED;
  return (void*)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  return mmap64(at, length, protection, flags, fd, offset);
}

// --- sizes
// ---------------------------------------------------------------------------------------------------------------
int ftruncate64(int fd, off64_t size) {
  if (!tracked(fd)) return (int)syscall(SYS_ftruncate, fd, size);
  struct stat status = {0};
  pthread_mutex_lock(&lock);
  fstat(fd, &status);
  const int done =
      fails(op_resize, "ftruncate", fds[fd].path, size > status.st_size) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
  const int error = errno;
  if (done == 0) write_log('t', fds[fd].file, size, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return done;
}
int ftruncate(int fd, off_t size) {
  return ftruncate64(fd, size);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  if (!tracked(fd)) return (int)syscall(SYS_fallocate, fd, mode, offset, length);
  pthread_mutex_lock(&lock);
  const int done =
      fails(op_resize, "fallocate", fds[fd].path, 1) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, length);
  const int error = errno;
  if (done == 0 && mode == 0) write_log('g', fds[fd].file, offset + length, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return done;
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return fallocate64(fd, mode, offset, length);
}
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return fallocate64(fd, 0, offset, length) == 0 ? 0 : errno;
}
int posix_fallocate(int fd, off_t offset, off_t length) {
  return posix_fallocate64(fd, offset, length);
}

// --- syncs
// ---------------------------------------------------------------------------------------------------------------
static int sync_file(int fd, int call, const char* name) {
  if (!tracked(fd)) return (int)syscall(call, fd);
  const uint64_t file = fds[fd].file;
  pthread_mutex_lock(&lock);
  const int failed = fails(op_sync, name, fds[fd].path, 0);
  int error = errno;
  if (!failed) write_log('f', file, 0, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&lock);
  if (failed) {
    errno = error;
    return -1;
  }
  usleep((useconds_t)sync_ms * 1000);
  const int done = skip_sync ? 0 : (int)syscall(call, fd);
  error = errno;
  pthread_mutex_lock(&lock);
  if (done == 0) write_log('F', file, 0, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return done;
}
int fsync(int fd) {
  return sync_file(fd, SYS_fsync, "fsync");
}
int fdatasync(int fd) {
  return sync_file(fd, SYS_fdatasync, "fdatasync");
}

// --- names
// ---------------------------------------------------------------------------------------------------------------
static int change_name(char kind, const char* name, int at, const char* path, int at2, const char* path2, int call,
                       unsigned long detail) {
  char first[256], second[256];
  const char* inside = below(at, path, first);
  const char* target = path2 ? below(at2, path2, second) : NULL;
  const int seen = inside || target;
  if (seen) pthread_mutex_lock(&lock);
  int done = -1;
  if (!seen || !fails(op_name, name, inside ? inside : target, kind == 'm')) {
    struct stat status = {0};
    done = path2 ? (int)syscall(call, at, path, at2, path2, detail) : (int)syscall(call, at, path, detail);
    const int error = errno;
    if (seen && done == 0) {
      uint64_t file = 0;
      if (kind == 'm' && fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0) file = file_of(status.st_ino, 1);
      write_log(kind, file, 0, inside, target, NULL, 0);
    }
    errno = error;
  }
  const int error = errno;
  if (seen) pthread_mutex_unlock(&lock);
  errno = error;
  return done;
}

int rename(const char* from, const char* to) {
  return change_name('r', "rename", AT_FDCWD, from, AT_FDCWD, to, SYS_renameat2, 0);
}
int renameat(int at, const char* from, int at2, const char* to) {
  return change_name('r', "rename", at, from, at2, to, SYS_renameat2, 0);
}
int renameat2(int at, const char* from, int at2, const char* to, unsigned flags) {
  return change_name(flags & RENAME_EXCHANGE ? 'x' : 'r', "rename", at, from, at2, to, SYS_renameat2, flags);
}
int link(const char* from, const char* to) {
  return change_name('l', "link", AT_FDCWD, from, AT_FDCWD, to, SYS_linkat, 0);
}
int unlink(const char* path) {
  return change_name('u', "unlink", AT_FDCWD, path, 0, NULL, SYS_unlinkat, 0);
}
int unlinkat(int at, const char* path, int flags) {
  const int is_folder = (flags & AT_REMOVEDIR) != 0;
  return change_name(is_folder ? 'd' : 'u', "unlink", at, path, 0, NULL, SYS_unlinkat, (unsigned long)flags);
}
int rmdir(const char* path) {
  return change_name('d', "rmdir", AT_FDCWD, path, 0, NULL, SYS_unlinkat, AT_REMOVEDIR);
}
int remove(const char* path) {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}
int mkdir(const char* path, mode_t mode) {
  return change_name('m', "mkdir", AT_FDCWD, path, 0, NULL, SYS_mkdirat, mode);
}
int mkdirat(int at, const char* path, mode_t mode) {
  return change_name('m', "mkdir", at, path, 0, NULL, SYS_mkdirat, mode);
}
