// The process between a watched program and its tracker. It is the program's parent and reads its output, so that a
// tracker that dies takes neither with it; it passes the output on to where it would have gone, and appends it to the
// spool. It is a copy of this process that runs nothing else, ends with the program, and ignores the signals of the
// terminal.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "app/import/spool.h"

namespace stepladder {

// Writes all, waiting if the descriptor isn't ready. Returns the reason (an errno) if it can't.
int write_all(int descriptor, const char* data, std::size_t size);

// Starts the keeper and the program, before this process has threads, and returns the keeper's pid. The program's
// output goes through pipes, or through a terminal of its own if ours is one, so that it prints line by line and in
// colour as usual. Throws UsageError if the program can't be started.
pid_t start_keeper(const std::vector<std::string>& command, const Spool& spool);

}  // namespace stepladder
