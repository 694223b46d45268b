// Decides which files of one folder are repeats of one rung, and which are rungs of a ladder. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct Summary;

// The way in which an import treats the files of one folder. `detect`: group_files decides. `apart`: in no ladder.
enum class FilesAre { detect, repeats, rungs, apart };
std::string_view to_string(FilesAre files);  // "rungs"

// A file, or a run of a journal or of another tracker's store.
struct FileRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
  bool has_own_name = false;  // its user named it: a run that names no configuration is then no repeat of another
};

struct FileGrouping {
  FilesAre files = FilesAre::repeats;    // never detect
  std::string reason;                    // a clause in lower case: "the hardware differs: NVIDIA A100, NVIDIA H100"
  std::vector<int> rung = {};            // of each file, from 0: in the order of files, in a sweep by its values
  std::vector<std::string> titles = {};  // of each rung, of what differs; empty if that isn't a name
  bool is_sweep = false;                 // of rungs: only values of the recipe differ
};

// The rule of repeats, the same for logs, stores and journals:
// 1. Files with the same configuration are repeats of one rung: hardware, model, precision, source code and all values
//    of the recipe. A seed, names and paths don't count, nor does a value that only one file names.
// 2. Files that differ in it are rungs, one for each combination of what differs: a sweep if these are values of the
//    recipe alone.
// 3. Files of different programs (their log formats differ) are apart.
// Files that name no difference are apart if one's first loss is at most a third of another's: other data or weights,
// as the phases of one training have. Else they are rungs if the step times of a tenth of them differ from the median
// file's by more than 5 % and more than twice the width between the quartiles within a file (docs/measuring.md), or if
// each has a name of its own and no configuration; else repeats.
FileGrouping group_files(std::span<const FileRun> files);

// The settings that an imported sweep is over, in the order of their names: those that differ between its runs, if the
// rungs have no other names than their values (FileGrouping::titles). Empty if it isn't a sweep, or was launched here.
std::vector<std::string> swept_settings(std::span<const Run* const> runs);

// Why these runs aren't repeats of one thing: "batch_size 8, 16, 128; optimizer adamw, muon". Empty if they are, or if
// they don't say.
std::string differences_text(std::span<const Run* const> runs);

// Whether a setting may differ between repeats: the seed, and names of runs, places and times.
bool differs_between_repeats(const std::string& setting);

}  // namespace stepladder
