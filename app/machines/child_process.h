// A program with pipes to its standard streams, which never block this side. POSIX.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

class ChildProcess {
 public:
  // Throws std::runtime_error if it can't be started. It is a session of its own, which Ctrl-C here doesn't reach; only
  // with `has_terminal` it may ask on ours, and Ctrl-C reaches it too. Of `more_environment`, "NAME=VALUE" sets a
  // variable and "NAME" removes it.
  ChildProcess(const std::vector<std::string>& command, bool has_terminal,
               const std::vector<std::string>& more_environment = {});
  ~ChildProcess();  // ends it: SIGTERM, and SIGKILL after half a second
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void write(std::string_view bytes) { to_write_.append(bytes); }
  void close_input();  // after what waits
  std::size_t unwritten() const { return to_write_.size() - written_; }

  // What there is to do without waiting. `read` gets at most 1 MiB at a time.
  void turn(std::string& read);
  void add_to(std::vector<pollfd>& waiting) const;

  bool has_ended() const { return ended_; }              // and all of its output is read
  int exit_status() const { return status_; }            // 128 + N after signal N; after has_ended
  const std::string& errors() const { return errors_; }  // the last 8 KiB of stderr

 private:
  void write_some();
  bool read_from(int& descriptor, std::string& into);

  pid_t pid_ = 0;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string to_write_;
  std::size_t written_ = 0;
  bool closes_input_ = false;
  bool ended_ = false;
  int status_ = 0;
  std::string errors_;
};

// What it prints. Blocks until it has ended. Throws std::runtime_error with its last words if it fails, or if it takes
// longer than `patience`; then it is ended.
std::string output_of(const std::vector<std::string>& command, const std::string& input = {},
                      const std::vector<std::string>& more_environment = {}, bool has_terminal = false,
                      std::chrono::seconds patience = std::chrono::hours(24));

}  // namespace stepladder
