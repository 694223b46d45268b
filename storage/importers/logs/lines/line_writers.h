// Who wrote the steps of a log: two trainings may print into one file in turn, each with its name in front of its lines
// ("[baseline] step 1", "trainer-b-1  | step 1"), or a search may list the lines of several files ("run1.txt:step 1").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "storage/records.h"

namespace stepladder {

class LineWriters {
 public:
  // A whole line with a step and its loss, in the order of the log. True if it is beside the step's own line, which is
  // right above it and begins otherwise: "saved checkpoint of step 100, loss 3.2".
  bool add(std::string_view line, std::int64_t step, double loss);

  // The beginnings of the lines of two trainings; empty: nothing shows that there are two.
  std::string several() const;

 private:
  struct Writer {
    std::int64_t step = -1, steps = 0;
  };
  std::map<std::string, Writer, std::less<>> writers_;  // by the beginning of their lines
  std::string last_;                                    // of the line before
  std::int64_t last_step_ = -1;
  double last_loss_ = missing;
  int returns_ = 0;    // to a writer after another one has written
  int backs_ = 0;      // to another writer at no later step, with another loss
  int behind_ = 0;     // ... at an earlier one
  std::string named_;  // two names of files or runs between which the steps begin again
  bool last_names_run_ = false;
  bool gave_up_ = false;  // the beginnings hold values
};

}  // namespace stepladder
