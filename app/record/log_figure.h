// The one figure of a run's log that commits and machines are compared by. Lower is better in each.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "storage/records.h"

namespace stepladder {

enum class FigureBy {
  throughput,  // steady seconds per token, else per step
  loss,        // the last validation loss, else the last training loss
  wall,        // seconds from the command's start to its end
};
const char* to_string(FigureBy by);
std::optional<FigureBy> figure_by(std::string_view name);

struct LogFigure {
  double value = missing;
  std::string unit;  // "s/token", "s/step", "nats", "s"
};

// The log has no such figure. what() is a sentence without the file's name.
struct NoFigure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Of throughput or loss: imports the log into memory as `stepladder import` would; of several runs the last counts.
// Throws NoFigure.
LogFigure figure_of_log(const std::filesystem::path& log, FigureBy by);

}  // namespace stepladder
