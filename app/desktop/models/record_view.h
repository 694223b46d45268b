// The Record view's model: a pool judged under a rule, on another thread. UI thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/models/background.h"
#include "app/record/published_records.h"
#include "storage/speedrun/record_claim.h"

namespace stepladder {

struct RecordQuestion {
  std::string pool;  // a name as read_pool has them, or numbers of runs with blanks between; empty: none
  std::string baseline;
  std::string rule;  // its name; empty: the one whose target is the nearest to the logs, if any is near
  bool systems_only = false;

  bool operator==(const RecordQuestion&) const = default;
};

// A run as a dot.
struct RecordDot {
  std::string name;  // its log or run
  double value = missing;
  double time_s = missing;
  double p = missing;  // of this run and those before it
};

struct RecordView {
  RecordQuestion asked;
  std::string problem;               // why the pool couldn't be judged
  std::vector<std::string> instead;  // folders within the asked one that hold logs, where it holds none
  std::vector<RecordRule> rules;     // by name
  std::optional<RecordRule> rule;
  RecordClaim claim;
  std::vector<RecordDot> dots;  // in order of the runs' dates
  PublishedRecords published;
  std::string published_problem;
  std::size_t stamp = 0;  // of the logs and the database as they were when they were read
};

// The answer to a question. Reads logs and the database; blocks.
RecordView record_view(const RecordQuestion& question, const std::filesystem::path& database,
                       const std::filesystem::path& assets);

class RecordReader {
  using Clock = std::chrono::steady_clock;

 public:
  void ask(RecordQuestion question) {
    wanted_ = std::move(question);
    ++asked_;
  }
  bool is_pending() const { return background_.is_pending(); }
  bool is_due() const {
    return started_ > 0 && Clock::now() >= next_check_;
  }  // the next check, while the view is shown

  // Call in every frame. Starts what is wanted, and returns whether `into` was replaced. While the view is shown, it
  // also checks every second whether logs or the database have changed, and judges again if they have.
  bool update(std::shared_ptr<const RecordView>& into, const std::filesystem::path& database, bool is_shown,
              std::chrono::milliseconds patience);

 private:
  RecordQuestion wanted_;
  Clock::time_point next_check_{};
  std::int64_t asked_ = 0, started_ = 0;
  Background<std::shared_ptr<const RecordView>> background_;
};

}  // namespace stepladder
