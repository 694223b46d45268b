// The metrics that runs have logged, what is known of each, and the list from which the user chooses some. UI thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/desktop/data_requests.h"
#include "app/desktop/workspace.h"

namespace stepladder {

// The choice from the list: one metric by its name, or all that a text means now.
struct MetricChoice {
  std::vector<Quantity> metrics;
  std::string meant_by;  // as is_meant reads it: "val/*"; empty: by name
};

class MetricList {
 public:
  // Collects what these runs have logged, and asks for what isn't loaded.
  void update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, DataRequests& requests);

  std::uint64_t version() const { return version_; }         // counts changes of what is known of the metrics
  bool is_complete() const { return is_complete_; }          // all runs' names are loaded
  bool is_cut() const { return is_cut_; }                    // a run has more than the window lists
  const std::vector<Quantity>& all() const { return all_; }  // by name, without the steps' fields
  std::string unit_of(Quantity quantity) const;              // empty: not known
  Quantity throughput() const { return throughput_; }        // the first one in tokens/s; without one that of the steps
  Direction direction_of(Quantity quantity) const;           // which values are better
  std::string group_of(Quantity quantity) const;             // of its chart: "val/", or the section it was logged for
  std::vector<Quantity> meant_by(std::string_view text) const;  // as is_meant

  // A search field and the names beneath it, for a popup. Calls `take` with the user's choice. `is_shown` marks the
  // metrics that a view shows; null: none is marked. `view` names the anchors.
  using Take = std::function<void(const MetricChoice&)>;
  using IsShown = std::function<bool(Quantity)>;
  void draw(const std::string& view, const Take& take, const IsShown& is_shown = {});

 private:
  void draw_names(const std::string& view, const std::vector<Quantity>& found, const Take& take,
                  const IsShown& is_shown) const;

  struct Known {
    std::string unit;
    Direction direction = Direction::unknown;
    std::string section;
  };
  std::vector<const std::vector<Metric>*> known_to_runs_;  // in the last frame
  std::vector<std::size_t> sizes_;
  std::vector<Quantity> all_;
  std::map<Quantity, Known> known_;
  Quantity throughput_ = Quantity::tokens_per_s;
  std::uint64_t version_ = 0;
  bool is_complete_ = false;
  bool is_cut_ = false;
  std::array<char, 128> search_{};
};

// "and 99,000 more; a search narrows them": behind the first `most_shown_metrics`.
inline constexpr std::size_t most_shown_metrics = 1000;
std::string more_metrics_text(std::size_t more);

// "0.9125": in four digits; "-" if it is missing.
std::string metric_value_text(double value);

// The group of a field's or metric's chart if no run says which section it belongs to: the prefix of its name.
std::string group_by_prefix(Quantity quantity);

}  // namespace stepladder
