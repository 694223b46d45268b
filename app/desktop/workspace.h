// All that is on the screen: runs, ladders, selection, what the engine is doing. Lives on the UI thread; panels read it
// and never change it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/device.h"
#include "storage/hardware.h"
#include "storage/records.h"
#include "storage/run_store.h"
#include "storage/rungs.h"
#include "storage/summary.h"

namespace stepladder {

// A run with what has been read or has arrived of it.
struct RunEntry {
  Run run;
  Summary summary;
  Series series;
  bool loaded = false;        // the series holds every step there is
  std::vector<double> steps;  // the series' columns as plots want them
  std::vector<double> tokens_per_s;
  double last_step_at = missing;  // unix seconds

  void set_series(Series read);
  void append(const StepRecord& record);
};

struct Message {
  std::string text;
  bool is_error = true;
};

class Workspace {
 public:
  // Everything but the steps, which are read when a panel asks for them.
  void load(RunStore& store);
  void load_series(RunStore& store, RunId run);
  void add_ladder(RunStore& store, LadderId ladder, const std::vector<RunId>& runs);

  // One event from the session. Returns whether it ended a run.
  bool ingest(const RunEvent& event);

  const RunEntry* find(RunId id) const;
  const std::vector<RunEntry>& runs() const { return runs_; }  // oldest first
  const std::vector<Ladder>& ladders() const { return ladders_; }
  const Ladder* ladder(LadderId id) const;
  std::vector<const RunEntry*> runs_of(LadderId ladder) const;  // by rung, then repeat
  const RunEntry* running() const;                              // the run that is training now
  const RunEntry* shown_live() const;                           // that, or the last one launched here
  std::vector<const RunEntry*> waiting() const;                 // queued, in order

  // Seconds until the run, or everything queued, is done; missing in the first ten steps.
  double seconds_left(const RunEntry& run) const;
  double seconds_left_of_all() const;

  // Puts the runs that wait into the session's order; others, which it has begun or ended meanwhile, stay before them.
  void order_queue(const std::vector<RunId>& waiting);

  bool is_paused = false;  // the run that is training now
  HardwareTable hardware;  // peaks to hold throughput against
  std::optional<DeviceReport> device;
  std::string device_problem;    // why LibTorch could not be asked
  LadderId selected_ladder = 0;  // 0: the newest
  int selected_rung = -1;        // -1: the fastest
  std::set<RunId> selected_runs;
  std::vector<Message> messages;
  std::string database;

 private:
  RunEntry* entry(RunId id);

  std::vector<RunEntry> runs_;
  std::map<RunId, std::size_t> index_;
  std::vector<Ladder> ladders_;
  std::vector<RunId> queue_;  // launched by this session, in the order in which they run
};

}  // namespace stepladder
