// Decides whether the files of one folder are repeats of one rung or rungs of a ladder. Pure.
#pragma once

#include <span>
#include <string>

#include "storage/records.h"

namespace stepladder {

struct Summary;

// The way in which an import treats the files of one folder. `detect`: group_files decides.
enum class FilesAre { detect, repeats, rungs };

struct FileRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
};

struct FileGrouping {
  FilesAre files = FilesAre::repeats;  // repeats or rungs
  std::string reason;                  // a clause in lower case: "the hardware differs: NVIDIA A100, NVIDIA H100"
};

// Files are rungs if two of them name different hardware, models, precisions, source code or recipe values (a seed,
// names and paths don't count), or if the step times of a tenth of the files differ from the median file's by more than
// 5 % and more than twice the width between the quartiles within a file (docs/measuring.md). Otherwise they are
// repeats. A value that only one file names isn't a difference.
FileGrouping group_files(std::span<const FileRun> files);

}  // namespace stepladder
