// A program with pipes to its standard streams, which never block this side. POSIX.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "storage/process.h"

namespace stepladder {

class PipedProcess {
 public:
  // Throws std::system_error if it can't be started. It is a session of its own, which Ctrl-C here doesn't reach; only
  // with `has_terminal` it may ask on ours, and Ctrl-C reaches it too. `environment` is as in Launch.
  PipedProcess(const std::vector<std::string>& command, bool has_terminal,
               const std::vector<std::string>& environment = {});
  ~PipedProcess();  // ends it
  PipedProcess(const PipedProcess&) = delete;
  PipedProcess& operator=(const PipedProcess&) = delete;

  void write(std::string_view bytes) { to_write_.append(bytes); }
  void close_input();  // after what waits
  std::size_t unwritten() const { return to_write_.size() - written_; }

  // Reads and writes what there is without waiting. `read` gets at most 1 MiB at a time.
  void poll(std::string& read);
  void add_to(std::vector<pollfd>& waiting) const;

  bool has_ended() const { return ended_; }                           // and all of its output is read
  int exit_status() const { return streams_.process.exit_status(); }  // after has_ended
  const std::string& errors() const { return errors_; }               // the last 8 KiB of stderr

 private:
  struct Streams {
    Descriptor in, out, err;  // our ends
    Process process;
  };
  static Streams start(const std::vector<std::string>& command, bool has_terminal,
                       const std::vector<std::string>& environment);
  void write_some();
  bool read_from(Descriptor& descriptor, std::string& into);

  Streams streams_;
  std::string to_write_;
  std::size_t written_ = 0;
  bool closes_input_ = false;
  bool ended_ = false;
  std::string errors_;
};

}  // namespace stepladder
