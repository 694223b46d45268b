// The messages at the bottom of the window: notices for some seconds; errors for a minute, or until another view is
// opened, after somebody had the time to read them. UI thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "app/desktop/command.h"

namespace stepladder {

struct Message {
  std::string text;
  bool is_error = true;
  double until = 0;       // of a notice, on ImGui's clock
  double seen_at = -1;    // of an error: when somebody first touched mouse or keyboard beside it; -1: not yet
  std::string file = {};  // that was saved; the message offers to open it
};

class Messages {
 public:
  void show_error(const std::string& text);             // once, however often it is said
  void notice(const std::string& text);                 // replaces the last one
  void file_notice(const std::filesystem::path& file);  // that it was saved, with buttons
  void wait_notice(const std::string& text);            // until the next one
  void dismiss(std::size_t index);
  void drop_notices();
  void drop_expired(bool has_input);  // `has_input`: somebody uses the window
  void leave_view();                  // another view was opened: what has been read goes

  bool has_notice() const;
  bool empty() const { return list_.empty(); }
  const std::vector<Message>& list() const { return list_; }

  // Inside a frame, `left` pixels from the window's left edge. `waiting` says what waits to be stored, and why;
  // empty ones aren't drawn. `undoable` is the notice that has an Undo button.
  void draw_errors(const std::vector<std::string>& waiting, float left, Commands& commands) const;
  void draw_notice(const std::string& undoable, Commands& commands) const;

 private:
  void draw_error(std::size_t i, Commands& commands) const;

  std::vector<Message> list_;
};

}  // namespace stepladder
