// The command palette: type a few letters of an action, a ladder or a run; Enter carries it out. UI thread, inside a
// frame.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/actions.h"

namespace stepladder {

class PalettePopup {
 public:
  void open(std::vector<Action> actions);  // from the next frame on
  bool is_open() const { return is_open_; }
  void draw(Commands& commands);

 private:
  void match();
  void choose(const Action& action, Commands& commands);
  void begin_window() const;
  bool move_selection();                        // by the arrow keys; returns whether it moved
  std::optional<int> draw_matches(bool moved);  // the index of the clicked match

  bool is_open_ = false;
  bool is_new_ = false;
  std::vector<Action> actions_;
  std::vector<std::size_t> matches_;  // indices into actions_, best first
  std::array<char, 128> typed_{};
  std::string matched_for_;
  std::vector<std::string> recent_;  // titles of chosen actions, the newest first
  int selected_ = 0;
};

}  // namespace stepladder
