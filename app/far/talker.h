// The talker: answers requests, lines of JSON on standard input, and sends what followed runs write. It lives as long
// as the link and leaves nothing behind but keepers.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "app/far/children.h"
#include "app/far/follower.h"
#include "app/far/run_state.h"
#include "app/far/slurm_jobs.h"
#include "app/far/wire.h"

namespace stepladder::far {

class Talker {
 public:
  using Clock = std::chrono::steady_clock;

  // `folder` is absolute. It ends after `silence` without a line.
  Talker(std::string folder, std::chrono::seconds silence);

  int run();  // until the other side has gone; the exit status

  // One request; the answer follows in `waiting`.
  void handle_line(std::string_view line);
  const std::string& waiting() const { return output_; }

 private:
  void read_input();
  void write_output();
  void send(const Json& line);
  void answer(const Json& id, const Json& ok);
  void refuse(const Json& id, const std::string& sentence);
  void handle(const Json& id, const std::string& what, const Json& request);

  void report(const Json& id);
  void ask_about_logout(const Json& id, Json found);
  void installed(const Json& id, const Json& request);
  Json runs(const Json& request);
  Json put(const Json& request);
  void start(const Json& id, const Json& request);
  void write_request(const Request& request);
  void start_keeper_for(const Json& id, const Request& request, int run_folder);
  void signal(const Json& id, const Json& request);
  void forget(const Json& id, const Json& request);
  void remove_forgotten();
  Json state(const std::string& run);
  bool signal_process(const std::string& name, int run_folder, const Json& state);
  std::string path_of(const std::string& run) const { return folder_ + "/runs/" + run; }

  const std::string folder_;
  const std::chrono::seconds silence_;
  std::string input_;
  bool skips_line_ = false;  // a line that is too long
  std::string output_;
  bool input_has_ended_ = false;
  bool output_is_gone_ = false;
  Clock::time_point last_line_ = Clock::now();
  Clock::time_point next_alive_{};

  Children children_;
  SlurmJobs jobs_;
  Follower follower_;
  std::map<std::string, Attempt> attempts_;  // by run
  std::optional<Json> logout_;               // what a logout does to programs here, once it was asked
};

}  // namespace stepladder::far
