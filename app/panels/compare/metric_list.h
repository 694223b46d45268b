// The metrics that the compared runs have logged, and the lists from which the user adds them to the grid. UI thread.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

class MetricList {
 public:
  // Takes in what these runs have logged, and asks for what isn't loaded.
  void update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, Commands& commands);

  const std::vector<Quantity>& all() const { return all_; }  // by name, without the steps' fields
  std::string unit_of(Quantity metric) const;                // empty: not known

  // A search field and the names beneath it, for a popup. Calls `add` with those that the user chose: one, or all that
  // the pattern means.
  void draw(const std::function<void(const std::vector<Quantity>&)>& add);

 private:
  std::vector<const std::vector<Metric>*> known_;  // of the runs in the last frame
  std::vector<std::size_t> sizes_;
  std::vector<Quantity> all_;
  std::map<Quantity, std::string> units_;
  std::array<char, 128> search_{};
};

}  // namespace stepladder
