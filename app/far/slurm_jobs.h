// Submits jobs through Slurm's own commands, and knows the states of the user's. One `squeue` serves all of them, and
// whoever wants to see the queue, at most every 30 s.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "app/far/children.h"
#include "app/far/run_folder.h"
#include "app/far/run_state.h"
#include "app/far/slurm_cluster.h"

namespace stepladder::far {

class SlurmJobs {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const std::string& error)>;  // empty: done

  // `folder` holds runs/.
  SlurmJobs(std::string folder, Children& children)
      : folder_(std::move(folder)), children_(children), cluster_(children) {}

  // The job of a run's latest request, whose state is asked for while it isn't over; null if the run has none.
  const Job* job_of(const std::string& run, int run_folder);

  // Submits a job that keeps the run, unless this request has one. `path` is the run's folder.
  void submit(const std::string& path, const Request& request, Done done);

  // stop, terminate, kill, pause, continue. A queued job is cancelled by the first three.
  void signal(const Job& job, const std::string& name, bool is_queued, Done done);

  // Asks Slurm if it is time.
  void poll();

  // Answers the request `slurm`.
  void describe(SlurmCluster::Done done) { cluster_.describe(std::move(done)); }

 private:
  struct Known {
    std::int64_t number = 0;  // of the request
    Job job;
    bool has_folder_entry = false;  // job.json has been read
    Clock::time_point next_detail{};
  };
  struct Submission;
  void find_by_name(std::shared_ptr<Submission> submission);
  void submit_now(std::shared_ptr<Submission> submission);
  void store_number(const std::shared_ptr<Submission>& submission, const std::string& id);
  void finish(const std::shared_ptr<Submission>& submission, const std::string& error);

  void on_queue(const Outcome& outcome);
  void ask_details(const std::string& run);
  void ask_accounting(const std::string& run);

  void on_details(const std::string& run, const Outcome& outcome);
  void set_state(const std::string& run, const std::string& state, const std::string& reason, const std::string& nodes);

  const std::string folder_;
  Children& children_;
  SlurmCluster cluster_;
  std::map<std::string, Known> known_;
  Clock::time_point last_ask_{};
  bool asks_ = false;
  bool is_new_ = false;
};

}  // namespace stepladder::far
