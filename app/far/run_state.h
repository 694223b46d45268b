// The state of a run, from what its folder holds, this machine's processes and, for a job, what Slurm says.
#pragma once

#include <cstdint>
#include <string>

#include "app/far/run_folder.h"
#include "app/far/wire.h"

namespace stepladder::far {

// A job as Slurm describes it.
struct Job {
  std::string id;
  std::string state;  // PENDING, RUNNING, COMPLETED, ...; empty: not known
  std::string reason;
  std::string nodes;
  bool was_asked = false;  // false: Slurm hasn't answered yet
  double asked_at = 0;     // unix seconds

  bool is_queued() const;
  bool is_over() const;
};

// The journal of a run's latest attempt; read again only when it has grown.
class Attempt {
 public:
  void read(int run_folder);

  std::int64_t number() const { return number_; }  // 0: no keeper has begun
  const Json& first() const { return first_; }     // the `run` line
  const Json& program() const { return program_; }
  const Json& last() const { return last_; }
  bool has_ended() const { return text_field(last_, "e", "") == "end"; }
  double changed_at() const { return changed_at_; }  // as the file's system says

 private:
  std::int64_t number_ = 0;
  std::uint64_t size_ = 0;
  double changed_at_ = 0;
  Json first_ = Json::object(), program_ = Json::object(), last_ = Json::object();
};

// The state as docs/far.md describes it. `job` is null for a run without Slurm. Throws Refusal if the folder has no
// request.
Json state_of(const std::string& run, int run_folder, Attempt& attempt, const Job* job);

bool may_be_active(const Json& state);  // the phase isn't `ended` or `gone`

// A process that a journal's line names, if it is on this machine and alive.
bool is_here(const Json& first_line);
bool lives(const Json& first_line, const Json& process);

}  // namespace stepladder::far
