// The facts that the journals of one run give, and the descriptions of its metrics.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/logged_steps.h"
#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

// A journal's first line.
struct JournalHeader {
  std::string uid;
  std::string id;
  std::string name;
  std::int64_t attempt = 1;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  double started_at = missing;
  std::int64_t pid = 0;  // the writer, as in storage/database/process.h
  std::int64_t pid_start = 0;
  std::string boot;

  bool operator==(const JournalHeader&) const = default;
};

// Empty if the event isn't a `run` line. Throws ImportError if a newer version of Stepladder wrote it.
std::optional<JournalHeader> journal_header(const JournalEvent& event);

class JournalRun {
 public:
  // `known`: the run as an earlier reader left it.
  explicit JournalRun(Run known = {});

  // An event of the journal with this header; numbers are added to the journal's `steps`. Other ranks' metrics are
  // called rank/N/NAME, and if there are several ranks, each one's step times rank/N/dt_ms.
  void take(const JournalEvent& event, const JournalHeader& header, LoggedSteps& steps);

  // The run with everything known so far. `recipe` and `environment` are JSON.
  Run run() const;
  std::int64_t tokens_per_sample() const;

  bool changed() const { return changed_; }  // what run() returns, since `keep`
  bool has_ended() const { return ended_; }
  void keep() { changed_ = false; }

  // Completes the metrics by what a script said of them (units, direction, group).
  void describe(LoggedBatch& batch) const;

  // The descriptions that `describe` uses, as JSON for a later reader.
  Json descriptions() const;
  void take_descriptions(const Json& descriptions);

  std::vector<TextSample> take_texts() { return std::exchange(texts_, {}); }
  std::vector<ConsoleText> take_outputs() { return std::exchange(outputs_, {}); }

  // One sentence each on what isn't kept, and on what was lost.
  std::vector<std::string> notes() const;

 private:
  void take_header(const JournalEvent& event, const JournalHeader& header);
  void take_end(const JournalEvent& event, const JournalHeader& header);
  void take_step(const JournalEvent& event, const JournalHeader& header, LoggedSteps& steps);
  void take_metric(const Json& fields);
  void take_text(const JournalEvent& event);
  void put(const char* name, const Json& value);
  void put_summary(const std::string& name, const Json& value);

  Run run_;
  Json recipe_;
  Json environment_;
  std::map<std::string, Metric> described_;  // by name or pattern
  std::vector<TextSample> texts_;
  std::vector<ConsoleText> outputs_;
  std::map<std::string, std::uint64_t> unknown_kinds_;
  std::uint64_t texts_seen_ = 0;
  bool changed_ = false;
  bool ended_ = false;
};

}  // namespace stepladder
