// `rank -- COMMAND`: one process of a program that Slurm started on several nodes. Gives it torchrun's variables and
// becomes it.
#pragma once

#include <string>
#include <vector>

namespace stepladder::far {

// "node[03-04,7],gpu1" -> "node03". Empty if the list is.
std::string first_host(const std::string& list);

// "2(x3),1" and node 3 -> 1; 1 if the list doesn't say.
int tasks_on_node(const std::string& list, int node);

// Doesn't return unless the program can't be started; then the exit status.
int become_rank(const std::vector<std::string>& command);

}  // namespace stepladder::far
