// The keeper: the parent of one run's program. It outlives every link, and writes the program's output and end to the
// run's journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepladder::far {

// `keep RUNFOLDER [--request N]`: keeps the run until its program has ended. Prints one line of JSON, {"ok":{}} or
// {"error":"..."}, as soon as the program is certain to be started, then lets go of its output. Returns the exit
// status.
int keep(const std::string& folder, std::int64_t number);

// `rank -- COMMAND`: one process of a program that Slurm started on several nodes. Gives it torchrun's variables and
// becomes it.

// "node[03-04,7],gpu1" -> "node03". Empty if the list is.
std::string first_host(const std::string& list);

// "2(x3),1" and node 3 -> 1; 1 if the list doesn't say.
int tasks_on_node(const std::string& list, int node);

// Doesn't return unless the program can't be started; then the exit status.
int become_rank(const std::vector<std::string>& command);

}  // namespace stepladder::far
