// The messages at the bottom of the window: errors until they are dismissed, notices for some seconds. UI thread.
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
  std::string file = {};  // that was saved; the message offers to open it
};

class Messages {
 public:
  void show_error(const std::string& text) { list_.push_back({.text = text}); }
  void notice(const std::string& text);                 // replaces the last one
  void file_notice(const std::filesystem::path& file);  // that it was saved, with buttons
  void wait_notice(const std::string& text);            // until the next one
  void dismiss(std::size_t index);
  void drop_notices();
  void drop_expired();  // notices

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
