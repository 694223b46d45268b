// Finds the lines of a log or table from which a step was read, so that the user can compare the value with its source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/records.h"

namespace stepladder {

struct SourceQuestion {
  std::filesystem::path file;
  std::string text;       // pasted, if `file` is empty
  ImportOptions options;  // with which it was read
  std::string stage;      // of the run; tells runs of one file apart that have equal steps
  StepRecord step;
};

struct SourceLines {
  std::int64_t line = 0;           // that prints the step, from 1; 0: not found
  std::int64_t first = 0;          // the number of lines.front()
  std::vector<std::string> lines;  // that line and some around it
  std::string problem;             // why it was not found: a sentence
};

// Reads the file again, with the importer that read it. Blocks; never throws. `interrupted` is asked between pieces of
// the file.
SourceLines find_source_lines(const SourceQuestion& asked, const std::function<bool()>& interrupted);

// A number in a line that is a value of the step: its loss, validation loss, step time (in ms or s), learning rate or
// gradient norm.
struct PrintedNumber {
  std::size_t begin = 0;  // in bytes
  std::size_t length = 0;
  std::string_view what;  // "loss"
};
std::vector<PrintedNumber> numbers_of_step(std::string_view line, const StepRecord& step);

}  // namespace stepladder
