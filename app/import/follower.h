// Follows all that grows at some paths: journals, other trackers' stores, tables and logs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/import/journal_follower.h"
#include "app/import/store_follower.h"
#include "app/import/text_follower.h"

namespace stepladder {

// Used by one thread, as its store. The functions do for all what each of the three does.
class Follower {
 public:
  Follower(RunStore& store, const FollowRequest& request, const std::function<void(const std::string&)>& tell)
      : journals_(store, request, tell), stores_(store, request, tell), texts_(store, request, tell) {}

  void look() {
    journals_.look();
    stores_.look();
    texts_.look();
  }
  bool take_in() {
    const bool journals = journals_.take_in();
    const bool stores = stores_.take_in();
    return texts_.take_in() || stores || journals;
  }
  void settle() {
    journals_.settle(true);
    stores_.settle(true);
    texts_.settle(true);
  }
  std::vector<FollowedRun> runs() const {
    std::vector<FollowedRun> all = journals_.runs();
    for (const auto& some : {stores_.runs(), texts_.runs()}) all.insert(all.end(), some.begin(), some.end());
    return all;
  }

 private:
  JournalFollower journals_;
  StoreFollower stores_;
  TextFollower texts_;
};

}  // namespace stepladder
