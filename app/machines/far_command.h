// The commands that a machine is to run: a Stepladder there, with the words of a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/launch/ladder_file.h"
#include "app/machines/far_runs.h"
#include "app/machines/packed_files.h"

namespace stepladder {

// `words` after the program: {"ladder", "--steps", "20"}. The program is the Stepladder that `machines setup` installs
// there, or that the user's own shell would find; it writes journals, unless the command trains nothing itself.
FarCommand stepladder_there(const Machine& machine, const std::vector<std::string>& words, bool writes_journals = true);

// Splits a command line, quoted for a POSIX shell as command_line_of writes it, into words.
std::vector<std::string> words_of(std::string_view command_line);

// The words that train the ladder there, without the program's own name.
std::vector<std::string> words_of(const LadderRequest& request, const std::vector<SweptValue>& swept = {});

// A ladder or sweep of the Launch view. The text that ships with Stepladder is sent with it, in an archive that lives
// as long as the value; other data is the machine's.
struct FarLadder {
  FarCommand command;
  std::optional<PackedFiles> files;
};
FarLadder ladder_there(const Machine& machine, LadderRequest request, const std::vector<SweptValue>& swept,
                       const std::filesystem::path& shipped_text);

}  // namespace stepladder
