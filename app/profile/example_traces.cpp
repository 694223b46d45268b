// The files are in assets/examples; docs/third-party.md has their source and licence.
#include "app/profile/example_traces.h"

#include <filesystem>

#include "app/host/environment.h"

namespace stepladder {

std::vector<std::string> example_traces() {
  std::vector<std::string> files;
  for (const char* const name : {"modded-nanogpt-before.json.gz", "modded-nanogpt-after.json.gz"}) {
    const std::filesystem::path file = assets_folder() / "examples" / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return {};
    files.push_back(file.string());
  }
  return files;
}

}  // namespace stepladder
