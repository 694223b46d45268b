#include "app/cli/live/unread_output.h"

#include <iostream>

#include "app/import/spool.h"

namespace stepladder {

void tell_of_unread_outputs(const std::filesystem::path& database) {
  for (const UnreadOutput& output : unread_outputs(database))
    std::cerr << "stepladder: run " << output.run
              << (output.is_running ? " is still running, but its output isn't being recorded"
                                    : " has ended, but the end of its output isn't recorded")
              << "; `stepladder watch --attach " << output.run << "` records the rest\n";
}

}  // namespace stepladder
