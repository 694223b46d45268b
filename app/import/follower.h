// Follows everything that grows at some paths: journals, other trackers' stores, tables and logs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/import/journal_follower.h"
#include "app/import/source_follower.h"

namespace stepladder {

// Used by one thread, as its store. The functions do for all what each of the two does.
class Follower {
 public:
  Follower(RunStore& store, const FollowRequest& request, const std::function<void(const std::string&)>& report)
      : journals_(store, request, report), sources_(store, request, report) {}

  void scan() {
    journals_.scan();
    sources_.scan();
  }
  bool poll() {
    const bool journals = journals_.poll();
    return sources_.poll() || journals;
  }
  void finish_idle_runs() {
    journals_.finish_idle_runs(true);
    sources_.finish_idle_runs(true);
  }
  bool has_imported() const { return journals_.has_imported() || sources_.has_imported(); }
  std::vector<FollowedRun> runs() const {
    std::vector<FollowedRun> all = journals_.runs();
    const std::vector<FollowedRun> others = sources_.runs();
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

 private:
  JournalFollower journals_;
  SourceFollower sources_;
};

}  // namespace stepladder
