// The log of one run of a speed run, as modded-nanogpt, Parameter Golf, nanochat and llm.c print it: its statements
// about script, machine, clock and evaluations. The importers turn such a log into steps; this keeps what it claims.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"
#include "storage/regular_file.h"

namespace stepladder {

// A value of the metric that a line printed, and the log's own clock at that line.
struct PrintedEvaluation {
  std::int64_t step = 0;
  double value = missing;  // NaN and infinities are kept
  double time_ms = missing;
};

struct ClockReading {
  std::int64_t step = 0;
  double time_ms = 0;
  double average_ms = missing;  // of a step, as the line says
};

struct SpeedrunLog {
  std::string file;          // as it was given, or "run 12"
  std::string content_hash;  // of what was read (ContentHash); empty: it was no file

  // In printed order, of the last attempt at each step.
  std::vector<PrintedEvaluation> evaluations;
  std::vector<ClockReading> clock;
  std::int64_t scheduled_steps = 0;  // 0: the log doesn't say
  std::int64_t last_step = 0;
  PrintedEvaluation final;       // the last scheduled evaluation
  double other_final = missing;  // another value of that step, of a line that begins otherwise or follows
  std::int64_t val_tokens = 0;   // that an evaluation is of, if the log says it

  std::string script;                // the source that the log begins with; empty if it embeds none
  std::string script_hash;           // SourceCodeHash
  std::string seed;                  // printed, else a literal of the script; empty: not known
  std::vector<std::string> gpus;     // models, one per GPU
  std::vector<std::string> bus_ids;  // PCI addresses, in the same order
  std::string torch;
  std::string driver;
  std::optional<std::int64_t> started_at_s;  // unix seconds, if the printed local time is taken for UTC

  std::string doubt_id;  // of a project's run: why its figures can't be trusted, by the project's own judgement
  std::string doubt;

  bool has_steps = false;  // of a training
  bool is_empty = false;
  std::string problem;      // why the log doesn't count; empty if it does
  bool unfinished = false;  // because training didn't reach its last evaluation
};

struct LogQuestion {
  std::string metric = "val_loss";  // as in RecordRule
  std::string final_line;
  bool may_stop_early = false;  // a run that says so is finished before its last scheduled step
};

// Pure. Any bytes are a log, perhaps with a `problem`.
SpeedrunLog read_speedrun_log(std::string_view text, const LogQuestion& question);

// Reads the file; never throws for what it holds. A file that cannot be read, or of more than 64 MiB, has a `problem`.
SpeedrunLog load_speedrun_log(const std::filesystem::path& file, const LogQuestion& question,
                              Links links = Links::followed);

// The unix time of "Wed Sep  3 19:58:00 2025" within a line, read as UTC.
std::optional<std::int64_t> printed_date(std::string_view line);

}  // namespace stepladder
