// Of what is preloaded into a program to see or refuse its calls: the C library's own function of a name, and open with
// its kin, all as calls of the `open_file` that the including file defines. Needs _GNU_SOURCE.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

#define REAL(type, name, ...)       \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

// As openat; -1 with errno if it is refused.
static int open_file(int at, const char* path, int flags, mode_t mode);

#define MODE                                                   \
  mode_t mode = 0;                                             \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list list;                                              \
    va_start(list, flags);                                     \
    mode = va_arg(list, mode_t);                               \
    va_end(list);                                              \
  }

int open(const char* path, int flags, ...) {
  MODE return open_file(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE return open_file(AT_FDCWD, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  MODE return open_file(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  MODE return open_file(at, path, flags, mode);
}
int __open_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
int __openat_2(int at, const char* path, int flags) {
  return open_file(at, path, flags, 0);
}
int __openat64_2(int at, const char* path, int flags) {
  return open_file(at, path, flags, 0);
}
int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) {
  return creat(path, mode);
}
