// Describes a cluster: its partitions, their nodes, and how many jobs run and wait there.
#pragma once

#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "app/far/children.h"
#include "app/far/wire.h"

namespace stepladder::far {

// Asks Slurm at most every 30 s, however often it is called.
class SlurmCluster {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Json& answer)>;

  explicit SlurmCluster(Children& children) : children_(children) {}

  void describe(Done done);  // answers the request `slurm`

  // The owner runs squeue. These say whether it should count the jobs of all users, and whether somebody waits for it.
  bool is_asked() const { return is_described_ && Clock::now() < asked_until_; }
  bool awaits_queue() const { return is_described_ && !waiting_.empty(); }
  void on_queue(const Outcome& outcome);

 private:
  void ask_version();
  void ask_partitions();
  void ask_config();
  void end_of_questions();
  void answer();

  Children& children_;
  std::vector<Done> waiting_;
  Json answer_;                // the latest; without counts until there was a queue
  bool asks_ = false;          // sinfo
  bool is_described_ = false;  // the partitions are known
  std::string version_;        // empty: not known yet
  bool knows_config_ = false;
  Clock::time_point asked_until_{};
  Clock::time_point described_{};
  Clock::time_point counted_{};
};

// Texts that other programs print.
// Returns at least one field, which may be empty; drops an empty last one.
inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  if (fields.empty()) fields.emplace_back();
  return fields;
}

}  // namespace stepladder::far
