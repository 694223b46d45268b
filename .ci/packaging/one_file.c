// The start of the single file: unpacks what is appended to it, once, into a folder of the user's cache that is named by
// the content's hash, and starts the program there. Needs neither FUSE nor any library.
//
// The file is this program, a gzipped tar archive of regular files, and a trailer: the archive's offset (20 digits), the
// first 32 digits of its SHA-256, and a magic word.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

static const char magic[] = "\nstepladder-one-file\n";
enum { offset_digits = 20, hash_digits = 32, magic_length = sizeof magic - 1, block = 512 };

static void remove_tree(int parent, const char* name) {
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* const entries = folder < 0 ? NULL : fdopendir(folder);
  if (entries) {
    for (const struct dirent* entry; (entry = readdir(entries));)
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) remove_tree(folder, entry->d_name);
    closedir(entries);
    unlinkat(parent, name, AT_REMOVEDIR);
  } else {
    unlinkat(parent, name, 0);
  }
}

static const char* unfinished;  // the folder that is being filled

static void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  fputs("stepladder: ", stderr);
  vfprintf(stderr, format, values);
  fputs("\n", stderr);
  va_end(values);
  if (unfinished) remove_tree(AT_FDCWD, unfinished);
  exit(1);
}

// A path, or the end of the program if it is too long.
static void join(char* out, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(out, PATH_MAX, format, values);
  va_end(values);
  if (length < 0 || length >= PATH_MAX) fail("a path is too long: %.100s...", out);
}

enum { no = 0, yes = 1, for_all = 2 };

// The folder has to be this user's, and no link: the program in it will be started. Makes it if `makes`; for_all: other
// parts of Stepladder make it too.
static int own_folder(const char* path, int makes) {
  struct stat about;
  if (makes && mkdir(path, 0700) != 0 && errno != EEXIST)
    fail("%s cannot be made: %s; XDG_CACHE_HOME names another folder", path, strerror(errno));
  if (lstat(path, &about) != 0) return 0;
  // A umask of 002 lets the user's own group write, which ./run's cache has had too.
  if (makes == for_all && S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & (S_IWGRP | S_IWOTH)) == S_IWGRP &&
      chmod(path, about.st_mode & 0755) == 0)
    about.st_mode &= ~(mode_t)S_IWGRP;
  if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)))
    fail("%s is not a folder that only you can write", path);
  return 1;
}

static void cache_folder(char* out) {
  const char* cache = getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') {
    join(out, "%s", cache);
  } else {
    const char* home = getenv("HOME");
    if (!home || !*home) fail("neither HOME nor XDG_CACHE_HOME says where to unpack");
    join(out, "%s/.cache", home);
  }
  if (mkdir(out, 0700) != 0 && errno != EEXIST)
    fail("%s cannot be made: %s; XDG_CACHE_HOME names another folder", out, strerror(errno));
}

static unsigned long octal(const char* digits, size_t count) {
  unsigned long number = 0;
  for (size_t i = 0; i < count && digits[i] >= '0' && digits[i] <= '7'; ++i) number = number * 8 + (unsigned long)(digits[i] - '0');
  return number;
}

static void make_folders(const char* root, const char* name) {
  char path[PATH_MAX];
  for (const char* slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
    join(path, "%s/%.*s", root, (int)(slash - name), name);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) fail("%s cannot be made: %s", path, strerror(errno));
  }
}

static void unpack(int self, const char* root) {
  gzFile archive = gzdopen(dup(self), "rb");  // from where the file is read
  if (!archive) fail("no memory");
  char header[block], data[64 * block], path[PATH_MAX];
  for (;;) {
    if (gzread(archive, header, block) != block) fail("this file is damaged: its archive ends early");
    if (header[0] == '\0') break;
    char name[PATH_MAX];
    const char* const prefix = header + 345;
    if (*prefix) join(name, "%.155s/%.100s", prefix, header);
    else join(name, "%.100s", header);
    if (name[0] == '/' || strstr(name, "..")) fail("this file is damaged: it has an entry '%s'", name);
    make_folders(root, name);
    join(path, "%s/%s", root, name);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)(octal(header + 100, 8) & 0755));
    if (file < 0) fail("%s cannot be written: %s", path, strerror(errno));
    for (unsigned long left = octal(header + 124, 12); left > 0;) {
      const unsigned long padded = (left + block - 1) / block * block;
      const unsigned part = padded < sizeof data ? (unsigned)padded : (unsigned)sizeof data;
      if (gzread(archive, data, part) != (int)part) fail("this file is damaged: its archive ends early");
      const unsigned long bytes = left < part ? left : part;
      for (unsigned long done = 0; done < bytes;) {
        const ssize_t written = write(file, data + done, bytes - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail("%s cannot be written: %s", path, strerror(errno));
        done += (unsigned long)written;
      }
      left -= bytes;
    }
    if (close(file) != 0) fail("%s cannot be written: %s", path, strerror(errno));
  }
  while (gzread(archive, data, sizeof data) > 0) {
  }
  int error = Z_OK;
  gzerror(archive, &error);  // also a wrong checksum
  if (error != Z_OK && error != Z_STREAM_END && error != Z_BUF_ERROR) fail("this file is damaged: its archive doesn't have its checksum");
  gzclose(archive);
}

// Marks the folder as in use by this process and those that it starts: the program keeps the descriptor.
static void hold(const char* folder) {
  const int held = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (held >= 0) flock(held, LOCK_SH | LOCK_NB);
}

static int is_in_use(int parent, const char* name) {
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const int in_use = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) != 0;
  if (folder >= 0) close(folder);
  return in_use;
}

// What hasn't been started for a month and isn't in use: older versions, and what a killed start has left.
static void remove_old(const char* folder, const char* kept) {
  DIR* const entries = opendir(folder);
  if (!entries) return;
  const time_t month_ago = time(NULL) - 30 * 24 * 3600;
  struct stat about;
  for (const struct dirent* entry; (entry = readdir(entries));)
    if (entry->d_name[0] != '.' && strcmp(entry->d_name, kept) != 0 &&
        fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_mtime < month_ago &&
        !is_in_use(dirfd(entries), entry->d_name))
      remove_tree(dirfd(entries), entry->d_name);
  closedir(entries);
}

int main(int count, char** arguments) {
  (void)count;
  const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) fail("this file cannot be read: %s", strerror(errno));
  char trailer[offset_digits + hash_digits + magic_length + 1] = {0};
  const off_t size = lseek(self, 0, SEEK_END);
  if (pread(self, trailer, sizeof trailer - 1, size - (off_t)sizeof trailer + 1) != (ssize_t)sizeof trailer - 1 ||
      strcmp(trailer + offset_digits + hash_digits, magic) != 0)
    fail("this file is damaged: its end is missing");
  char hash[hash_digits + 1] = {0}, cache[PATH_MAX], folder[PATH_MAX], program[PATH_MAX], made[PATH_MAX];
  memcpy(hash, trailer + offset_digits, hash_digits);
  trailer[offset_digits] = '\0';

  cache_folder(cache);
  join(folder, "%s/stepladder", cache);
  own_folder(folder, for_all);
  join(folder, "%s/stepladder/app", cache);
  own_folder(folder, yes);
  join(made, "%s/new-%ld-%ld", folder, (long)getpid(), (long)time(NULL));
  join(cache, "%s", folder);
  join(folder, "%s/%s", cache, hash);
  if (!own_folder(folder, no)) {
    if (mkdir(made, 0700) != 0) fail("%s cannot be made: %s", made, strerror(errno));
    unfinished = made;
    if (lseek(self, (off_t)strtoll(trailer, NULL, 10), SEEK_SET) < 0) fail("this file is damaged");
    unpack(self, made);
    unfinished = NULL;
    // Only a whole folder gets the name. If another start was faster, its folder has the same content.
    if (rename(made, folder) != 0) {
      remove_tree(AT_FDCWD, made);
      if (!own_folder(folder, no)) fail("%s cannot be made: %s", folder, strerror(errno));
    }
    remove_old(cache, hash);
  }
  utimensat(AT_FDCWD, folder, NULL, 0);  // for remove_old
  hold(folder);
  join(program, "%s/lib/stepladder/stepladder", folder);
  close(self);
  execv(program, arguments);
  fail("%s cannot be started: %s; if that file system forbids programs, XDG_CACHE_HOME names another", program, strerror(errno));
}
