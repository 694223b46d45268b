// What glibc 2.28 lacks of the functions that GCC 12 and the program's libraries call, for programs that are linked
// against old_glibc.py's libraries. Linked into each of them and visible to nobody else.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// --- the start of a program ----------------------------------------------------------------------------------------------
// Before 2.34 the program ran its own constructors: the start file passed a function that did. Today's start file passes
// none, and the old __libc_start_main then runs none.
#ifdef STEPLADDER_PROGRAM
typedef int Main(int, char**, char**);
extern void (*__init_array_start[])(int, char**, char**) __attribute__((visibility("hidden")));
extern void (*__init_array_end[])(int, char**, char**) __attribute__((visibility("hidden")));
extern void _init(void);

static void run_constructors(int count, char** arguments, char** environment) {
  _init();
  for (size_t i = 0; i < (size_t)(__init_array_end - __init_array_start); ++i)
    __init_array_start[i](count, arguments, environment);
}

int __real___libc_start_main(Main* entry, int count, char** arguments, void (*init)(int, char**, char**),
                             void (*fini)(void), void (*loader_fini)(void), void* stack_end);
int __wrap___libc_start_main(Main* entry, int count, char** arguments, void (*init)(int, char**, char**),
                             void (*fini)(void), void (*loader_fini)(void), void* stack_end) {
  (void)init;
  return __real___libc_start_main(entry, count, arguments, run_constructors, fini, loader_fini, stack_end);
}
#endif

// --- since 2.32, 2.33 and 2.36 -------------------------------------------------------------------------------------------
char __libc_single_threaded = 0;  // libstdc++ may leave out atomic operations where it isn't 0

#ifdef __x86_64__
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
int __xstat(int version, const char* path, struct stat* about);
int __lxstat(int version, const char* path, struct stat* about);
int __fxstat(int version, int file, struct stat* about);
int __fxstatat(int version, int folder, const char* path, struct stat* about, int flags);
int stat(const char* restrict path, struct stat* restrict about) { return __xstat(STAT_VERSION, path, about); }
int lstat(const char* restrict path, struct stat* restrict about) { return __lxstat(STAT_VERSION, path, about); }
int fstat(int file, struct stat* about) { return __fxstat(STAT_VERSION, file, about); }
int fstatat(int folder, const char* restrict path, struct stat* restrict about, int flags) {
  return __fxstatat(STAT_VERSION, folder, path, about, flags);
}
// The same structure on 64-bit machines.
int stat64(const char* restrict path, struct stat64* restrict about) { return stat(path, (struct stat*)about); }
int lstat64(const char* restrict path, struct stat64* restrict about) { return lstat(path, (struct stat*)about); }
int fstat64(int file, struct stat64* about) { return fstat(file, (struct stat*)about); }
int fstatat64(int folder, const char* restrict path, struct stat64* restrict about, int flags) {
  return fstatat(folder, path, (struct stat*)about, flags);
}

uint32_t arc4random(void) {
  uint32_t number;
  if (getentropy(&number, sizeof number) != 0) abort();  // as glibc does
  return number;
}

// --- since 2.30 ----------------------------------------------------------------------------------------------------------
// The same moment by the clock that the old function takes. A jump of that clock makes the wait too short or too long;
// libstdc++ looks at its own clock afterwards and waits again if it was too short. At most a second at a time, so that it
// isn't too long either.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  struct timespec now, moment;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &moment);
  int64_t left = (int64_t)(until->tv_sec - now.tv_sec) * 1000000000 + (until->tv_nsec - now.tv_nsec);
  const int is_cut = left > 1000000000;
  if (is_cut) left = 1000000000;
  if (left < 0) left = 0;
  const int64_t nanoseconds = moment.tv_nsec + left;
  moment.tv_sec += nanoseconds / 1000000000;
  moment.tv_nsec = nanoseconds % 1000000000;
  const int result = pthread_cond_timedwait(condition, mutex, &moment);
  return result == ETIMEDOUT && is_cut ? 0 : result;  // a wake-up without a reason, which every caller expects
}

// --- posix_spawn with the actions of 2.29 and 2.34, and POSIX_SPAWN_SETSID -----------------------------------------------
// All of it is here, since an old glibc can't be taught a new action. The child shares our memory until it has started
// its program, as glibc's does.
enum ActionKind { action_open, action_dup2, action_close, action_folder, action_close_from };
struct Action {
  enum ActionKind kind;
  int file, other, flags;
  mode_t mode;
  char* path;
};
struct Actions {
  int count;
  struct Action list[];
};

static int add(posix_spawn_file_actions_t* actions, struct Action action) {
  struct Actions* const old = (struct Actions*)actions->__actions;
  const int count = old ? old->count : 0;
  struct Actions* const more = realloc(old, sizeof *more + sizeof action * (size_t)(count + 1));
  if (!more) return free(action.path), ENOMEM;
  more->list[count] = action;
  more->count = count + 1;
  actions->__actions = (struct __spawn_action*)more;
  return 0;
}

int posix_spawn_file_actions_init(posix_spawn_file_actions_t* actions) {
  memset(actions, 0, sizeof *actions);
  return 0;
}
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t* actions) {
  struct Actions* const list = (struct Actions*)actions->__actions;
  for (int i = 0; list && i < list->count; ++i) free(list->list[i].path);
  free(list);
  actions->__actions = NULL;
  return 0;
}
int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* restrict actions, int file, const char* restrict path,
                                     int flags, mode_t mode) {
  char* const copy = strdup(path);
  if (!copy) return ENOMEM;
  return add(actions, (struct Action){.kind = action_open, .file = file, .flags = flags, .mode = mode, .path = copy});
}
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int file, int other) {
  return add(actions, (struct Action){.kind = action_dup2, .file = file, .other = other});
}
int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t* actions, int file) {
  return add(actions, (struct Action){.kind = action_close, .file = file});
}
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* restrict actions, const char* restrict path) {
  char* const copy = strdup(path);
  if (!copy) return ENOMEM;
  return add(actions, (struct Action){.kind = action_folder, .path = copy});
}
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int first) {
  return add(actions, (struct Action){.kind = action_close_from, .file = first});
}

int posix_spawnattr_init(posix_spawnattr_t* attributes) {
  memset(attributes, 0, sizeof *attributes);
  return 0;
}
int posix_spawnattr_destroy(posix_spawnattr_t* attributes) { return (void)attributes, 0; }
int posix_spawnattr_setflags(posix_spawnattr_t* attributes, short flags) {
  const short known = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSID;
  if (flags & ~known) return EINVAL;
  attributes->__flags = flags;
  return 0;
}
int posix_spawnattr_setsigmask(posix_spawnattr_t* restrict attributes, const sigset_t* restrict mask) {
  attributes->__ss = *mask;
  return 0;
}
int posix_spawnattr_setsigdefault(posix_spawnattr_t* restrict attributes, const sigset_t* restrict defaults) {
  attributes->__sd = *defaults;
  return 0;
}
int posix_spawnattr_setpgroup(posix_spawnattr_t* attributes, pid_t group) {
  attributes->__pgrp = group;
  return 0;
}

static int close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0) return 0;
#endif
  const int files = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (files < 0) return -1;
  // Reads the folder without malloc, whose locks another thread of the parent may hold.
  char buffer[2048] __attribute__((aligned(8)));
  for (long bytes; (bytes = syscall(SYS_getdents64, files, buffer, sizeof buffer)) > 0;)
    for (long at = 0; at < bytes; at += *(unsigned short*)(buffer + at + 16)) {
      int file = 0;
      const char* digit = buffer + at + 19;
      for (; *digit >= '0' && *digit <= '9'; ++digit) file = file * 10 + (*digit - '0');
      if (*digit == '\0' && digit != buffer + at + 19 && file >= first && file != files) close(file);
    }
  close(files);
  return 0;
}

static int do_action(const struct Action* action) {
  switch (action->kind) {
    case action_open: {
      const int file = open(action->path, action->flags, action->mode);
      if (file < 0 || file == action->file) return file;
      const int moved = dup2(file, action->file);
      close(file);
      return moved;
    }
    case action_dup2:
      if (action->file == action->other) return fcntl(action->file, F_SETFD, 0);
      return dup2(action->file, action->other);
    case action_close:
      close(action->file);
      return 0;
    case action_folder:
      return chdir(action->path);
    case action_close_from:
      return close_from(action->file);
  }
  return -1;
}

struct Start {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const posix_spawn_file_actions_t* actions;
  const posix_spawnattr_t* attributes;
  sigset_t mask;  // of the caller
  int searches, error;
};

// In the child, which has the parent's memory: calls only what is safe in a signal handler.
static int start_program(void* argument) {
  struct Start* const start = argument;
  const posix_spawnattr_t* const attributes = start->attributes;
  const short flags = attributes ? attributes->__flags : 0;
  struct sigaction action;
  // A handler would run in our memory, so none is left when signals are let through again.
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || sigaction(signal, NULL, &action) != 0) continue;
    const int is_default = (flags & POSIX_SPAWN_SETSIGDEF) && sigismember(&attributes->__sd, signal) == 1;
    if (!is_default && action.sa_handler == SIG_IGN) continue;
    if (action.sa_handler == SIG_DFL) continue;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, NULL);
  }
  if ((flags & POSIX_SPAWN_SETSID) && setsid() < 0) goto failed;
  if ((flags & POSIX_SPAWN_SETPGROUP) && setpgid(0, attributes->__pgrp) != 0) goto failed;
  const struct Actions* const list = start->actions ? (const struct Actions*)start->actions->__actions : NULL;
  for (int i = 0; list && i < list->count; ++i)
    if (do_action(&list->list[i]) < 0) goto failed;
  pthread_sigmask(SIG_SETMASK, flags & POSIX_SPAWN_SETSIGMASK ? &attributes->__ss : &start->mask, NULL);
  if (!start->searches || strchr(start->program, '/')) {
    execve(start->program, start->arguments, start->environment);
    goto failed;
  }
  const char* folder = getenv("PATH");
  if (!folder) folder = "/bin:/usr/bin";
  errno = ENOENT;
  const size_t name = strlen(start->program);
  for (int is_denied = 0;;) {
    char file[PATH_MAX];
    const size_t length = strcspn(folder, ":");
    if (name > 0 && length + name + 2 < sizeof file) {
      memcpy(file, folder, length);
      if (length > 0) file[length] = '/';
      memcpy(file + length + (length > 0), start->program, name + 1);
      execve(file, start->arguments, start->environment);
      if (errno == EACCES) is_denied = 1;
      else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT) break;
    }
    folder += length;
    if (*folder++ == '\0') {
      errno = is_denied ? EACCES : ENOENT;
      break;
    }
  }
failed:
  start->error = errno ? errno : ECHILD;
  _exit(127);
}

static int spawn(pid_t* pid, struct Start* start) {
  const size_t stack_bytes = 64 * 1024;
  char* const stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return errno;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &start->mask);
  int cancellation;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  // Waits until the child has started its program or ended.
  const pid_t child = clone(start_program, stack + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, start);
  const int error = child < 0 ? errno : start->error;
  if (child > 0 && error != 0) waitpid(child, NULL, 0);
  munmap(stack, stack_bytes);
  pthread_setcancelstate(cancellation, NULL);
  pthread_sigmask(SIG_SETMASK, &start->mask, NULL);
  if (error == 0 && pid) *pid = child;
  return error;
}

int posix_spawn(pid_t* restrict pid, const char* restrict path, const posix_spawn_file_actions_t* restrict actions,
                const posix_spawnattr_t* restrict attributes, char* const arguments[restrict],
                char* const environment[restrict]) {
  struct Start start = {.program = path, .arguments = arguments, .environment = environment, .actions = actions,
                        .attributes = attributes};
  return spawn(pid, &start);
}
int posix_spawnp(pid_t* restrict pid, const char* restrict name, const posix_spawn_file_actions_t* restrict actions,
                 const posix_spawnattr_t* restrict attributes, char* const arguments[restrict],
                 char* const environment[restrict]) {
  struct Start start = {.program = name, .arguments = arguments, .environment = environment, .actions = actions,
                        .attributes = attributes, .searches = 1};
  return spawn(pid, &start);
}
