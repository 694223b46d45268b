// The keeper: the parent of one run's program. It outlives every link, and writes the program's output and end to the
// run's journal.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder::far {

// `keep RUNFOLDER [--request N]`: keeps the run until its program has ended. Prints one line of JSON, {"ok":{}} or
// {"error":"..."}, as soon as the program is certain to be started, then lets go of its output. Returns the exit
// status.
int keep(const std::string& folder, std::int64_t number);

}  // namespace stepladder::far
