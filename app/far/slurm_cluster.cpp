// Answers `slurm`: asks sinfo for the partitions, and counts the jobs of all users in the squeue that SlurmJobs runs
// anyway. Everybody who waits gets the same answer, which is at most a minute old.
#include "app/far/slurm_cluster.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace stepladder::far {
namespace {

using namespace std::chrono_literals;

constexpr auto cluster_patience = 30s;
constexpr auto fresh = 30s;
constexpr auto interest = 60s;  // after a question, the queue of all users is counted for as long
constexpr std::size_t most_partitions = 1000;

std::int64_t count_in(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

// "gpu:a100:4(S:0-1),gpu:2" -> 6
std::int64_t gpus_of(const std::string& resources) {
  std::int64_t count = 0;
  for (const std::string& entry : split(resources, ',')) {
    if (!entry.starts_with("gpu")) continue;
    const std::string plain = entry.substr(0, entry.find('('));
    count += std::strtoll(plain.c_str() + plain.rfind(':') + 1, nullptr, 10);
  }
  return count;
}

void add_to(Json& object, const char* name, std::int64_t more) {
  object[name] = object[name].get<std::int64_t>() + more;
}

// Lines of "%P|%l|%F|%G": a partition has one for each kind of node.
Json partitions_in(const std::string& text) {
  Json partitions = Json::array();
  for (const std::string& line : split(text, '\n')) {
    auto fields = split(line, '|');
    if (fields.size() != 4 || fields[0].empty()) continue;
    const bool is_default = fields[0].back() == '*';
    if (is_default) fields[0].pop_back();
    auto counts = split(fields[2], '/');  // allocated, idle, other, total
    counts.resize(4);
    auto found = std::ranges::find_if(partitions, [&](const Json& p) { return p["name"] == fields[0]; });
    if (found == partitions.end()) {
      if (partitions.size() >= most_partitions) break;
      partitions.push_back({{"name", fields[0]},
                            {"default", is_default},
                            {"time_limit", fields[1]},
                            {"nodes", 0},
                            {"idle", 0},
                            {"allocated", 0},
                            {"gpus", 0},
                            {"running", nullptr},
                            {"pending", nullptr}});
      found = partitions.end() - 1;
    }
    add_to(*found, "nodes", count_in(counts[3]));
    add_to(*found, "idle", count_in(counts[1]));
    add_to(*found, "allocated", count_in(counts[0]));
    add_to(*found, "gpus", count_in(counts[3]) * gpus_of(fields[3]));
  }
  return partitions;
}

// A job that ends, begins or is suspended has its nodes too.
const char* field_of(const std::string& state) {
  if (state == "PENDING") return "pending";
  for (const char* const running : {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED"})
    if (state == running) return "running";
  return nullptr;
}

}  // namespace

void SlurmCluster::describe(Done done) {
  asked_until_ = Clock::now() + interest;
  waiting_.push_back(std::move(done));
  if (asks_) return;
  if (is_described_ && Clock::now() - described_ < fresh) return answer();
  asks_ = true;
  version_.empty() ? ask_version() : ask_partitions();
}

void SlurmCluster::ask_version() {
  children_.start({"sinfo", "--version"}, cluster_patience, [this](const Outcome& version) {
    answer_ = {{"available", false},  {"version", ""},      {"partitions", Json::array()},
               {"accounting", false}, {"running", nullptr}, {"pending", nullptr},
               {"time", now()},       {"reason", ""}};
    if (version.succeeded()) {
      version_ = version.output.substr(0, version.output.find('\n'));
      return ask_partitions();
    }
    answer_["reason"] = version.started ? version.sentence("sinfo") : "Slurm's commands aren't installed here.";
    asks_ = is_described_ = false;
    for (const Done& done : std::exchange(waiting_, {})) done(answer_);
  });
}

void SlurmCluster::ask_partitions() {
  children_.start({"sinfo", "--noheader", "--format=%P|%l|%F|%G"}, cluster_patience, [this](const Outcome& info) {
    answer_["version"] = version_;
    answer_["available"] = info.succeeded();
    answer_["reason"] = info.succeeded() ? "" : info.sentence("sinfo");
    answer_["time"] = now();
    if (info.succeeded()) {
      // The counts of a former queue stay until the next one.
      const Json before = std::exchange(answer_["partitions"], partitions_in(info.output));
      for (Json& partition : answer_["partitions"])
        for (const Json& old : before)
          if (old["name"] == partition["name"])
            for (const char* const field : {"running", "pending"}) partition[field] = old[field];
      if (!knows_config_) return ask_config();
    }
    end_of_questions();
  });
}

void SlurmCluster::ask_config() {
  children_.start({"scontrol", "show", "config"}, cluster_patience, [this](const Outcome& config) {
    const std::size_t at = config.output.find("AccountingStorageType");
    const std::string line = at == std::string::npos ? "" : config.output.substr(at, config.output.find('\n', at) - at);
    answer_["accounting"] = !line.empty() && line.find("none") == std::string::npos;
    knows_config_ = config.succeeded();
    end_of_questions();
  });
}

void SlurmCluster::end_of_questions() {
  asks_ = false;
  described_ = Clock::now();
  is_described_ = answer_["available"] == true;
  answer();
}

// Waits for squeue if it hasn't counted lately.
void SlurmCluster::answer() {
  const bool is_counted = counted_ != Clock::time_point() && Clock::now() - counted_ < 2 * fresh;
  if (is_described_ && !is_counted) return;
  answer_["now"] = now();
  for (const Done& done : std::exchange(waiting_, {})) done(answer_);
}

void SlurmCluster::on_queue(const Outcome& outcome) {
  counted_ = Clock::now();
  answer_["time"] = now();
  answer_["reason"] = outcome.succeeded() ? "" : outcome.sentence("squeue");
  answer_["running"] = answer_["pending"] = nullptr;
  for (Json& partition : answer_["partitions"]) partition["running"] = partition["pending"] = nullptr;
  if (outcome.succeeded()) {
    answer_["running"] = answer_["pending"] = 0;
    for (Json& partition : answer_["partitions"]) partition["running"] = partition["pending"] = 0;
    for (const std::string& line : split(outcome.output, '\n')) {
      auto fields = split(line, '|');
      if (fields[0] != "count") continue;
      fields.resize(4);
      const char* const field = field_of(fields[2]);
      if (!field) continue;
      add_to(answer_, field, count_in(fields[3]));
      for (const std::string& name : split(fields[1], ','))  // a job may wait for several
        for (Json& partition : answer_["partitions"])
          if (partition["name"] == name) add_to(partition, field, count_in(fields[3]));
    }
  }
  answer();
}

}  // namespace stepladder::far
