// Shows a run's steps as a table and, for the chosen one, the lines of the log that it was read from, with its numbers
// marked. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <optional>

#include "app/desktop/data_requests.h"
#include "app/desktop/models/background.h"
#include "app/import/source_lines.h"

namespace stepladder {

// The file or text that a run was read from. Neither: it was launched here, and its steps have no source to show.
struct StepOrigin {
  std::string file;
  std::string text;
  ImportOptions options;

  bool is_known() const { return !file.empty() || !text.empty(); }
};

class StepSource {
 public:
  // Forgets the chosen step when another run is drawn. `reading` tells readings of one run apart.
  void draw(const Run& run, const Series& steps, const StepOrigin& origin, int reading, DataRequests& requests);

 private:
  void draw_table(const Series& steps, bool can_choose, ImVec2 size);
  void draw_lines(const Series& steps) const;

  RunId run_ = 0;
  int reading_ = 0;
  std::optional<std::size_t> chosen_;  // a place in the series
  Background<SourceLines> search_;
  SourceLines found_;
  std::optional<std::size_t> found_for_;
};

}  // namespace stepladder
