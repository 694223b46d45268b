// Choices among ways to compute a product that were made by timing them, in a small file, so that they are timed once
// and the same run makes the same choice again. Uses no torch.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace stepladder {

// `machine` names what a choice depends on: hardware and versions. In cache_folder(); an empty path where there is
// none.
std::filesystem::path kept_choices_file(const std::string& machine);

struct KeptChoice {
  std::string name;     // of the way
  std::string timings;  // "own 0.123 ms, LibTorch 0.240 ms"
};

// One line for each product: its key, the choice's name and the timings, separated by tabs. Anything else in the file
// is dropped when it is next written. Used by one thread; several processes may have the same file.
class KeptChoices {
 public:
  // An empty path: nothing is kept.
  explicit KeptChoices(std::filesystem::path file);

  // Null: unknown.
  const KeptChoice* find(const std::string& key) const;

  // None of the texts may have tabs or line breaks.
  void keep(const std::string& key, const KeptChoice& choice);

  // Writes what is new beside what others have written meanwhile, at once. A file that can't be written is left as it
  // is.
  void save();

 private:
  std::filesystem::path file_;
  std::map<std::string, KeptChoice> choices_, new_;
};

}  // namespace stepladder
