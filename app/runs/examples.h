// The examples that come with the program, in assets/examples: runs that make a point, and that are nobody's own.
#pragma once

#include <array>
#include <string>

#include "storage/records.h"

namespace stepladder {

struct ExampleFile {
  const char* title;
  const char* file;  // in the folder of examples
  const char* what;
  int rung = -1;         // that shows it; -1: none in particular
  const char* gpu = "";  // where the file doesn't name it
};
inline constexpr std::array<ExampleFile, 3> example_files{
    {{"Impossible: an RTX 3080 ladder", "rtx3080-ladder.txt",
      "A real log: ten of eleven rungs are faster than the card can be, since its clock didn't wait", 8},
     {"Possible: TF32 on an A100", "a100-three-rungs.csv",
      "A log of three rungs within what the card can do, each measured once", 2, "NVIDIA A100"},
     {"Noise: a hundred tries", "night-of-tries.db",
      "A hundred changes of a training, eight of them gains of 1 to 10 %, on a machine that drifts"}}};

std::string path_of(const ExampleFile& example);

// Whether a run is one of them, rather than the user's.
bool is_example(const Run& run);
bool is_example_file(const std::string& path);  // of a trace or run

}  // namespace stepladder
