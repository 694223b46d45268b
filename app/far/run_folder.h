// The folder of one run, FOLDER/runs/UUID, and the requests that started it. docs/far.md lists its files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/far/files.h"
#include "app/far/wire.h"

namespace stepladder::far {

struct SlurmWish {
  std::string partition, account, time, gpus;  // empty: the cluster's default
  std::int64_t nodes = 1;
  std::int64_t tasks_per_node = 1;
  std::int64_t signal_s = 120;  // before the time limit
  std::int64_t at_once = 0;     // of an array's tasks; 0: as many as the cluster has room for

  bool has_several_tasks() const { return nodes > 1 || tasks_per_node > 1; }
};

// A `start`. Its number is 1, and one more for each time that the run is started again.
struct Request {
  std::string run;
  std::int64_t number = 1;
  std::string name;
  std::vector<std::string> command;
  std::string folder;  // empty: work/
  std::map<std::string, std::string> environment;
  std::string tree;  // empty: none
  std::optional<SlurmWish> slurm;
  // The UUIDs of all runs that one submission starts, this one among them, in the order of the array's tasks; empty:
  // this run alone.
  std::vector<std::string> repeats;

  // The run in whose folder are what was sent and the submission: the first repeat.
  const std::string& leader() const { return repeats.empty() ? run : repeats.front(); }
};

// Throws Refusal, a sentence that names the field.
Request request_in(const Json& json);
Json as_json(const Request& request);

// FOLDER/runs/UUID; throws Refusal if there is none and `make` is false, or if it can't be made.
Descriptor run_folder(const std::string& folder, const std::string& run, bool make = false);

// The names of a request's files: "request.json", "request.2.json".
std::string numbered(const std::string& stem, std::int64_t number, const std::string& ending);

std::int64_t latest_request(int run_folder);  // its number; 0: none
// Empty if there is none with this number. Throws Refusal if it is damaged.
std::optional<Request> read_request(int run_folder, std::int64_t number);

// The attempts that keepers have begun, from their journals' names; empty if none.
std::vector<std::int64_t> attempts_in(int run_folder);
std::string attempt_journal(std::int64_t attempt);  // "rank-0.1.jsonl"

// A request to a keeper on another machine, in control/: "1.3" is the third for request 1. Its text is a signal's name.
std::string control_name(std::int64_t request, std::int64_t wish);

}  // namespace stepladder::far
