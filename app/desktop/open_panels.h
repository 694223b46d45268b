// The panels on the screen: which are open, and how they share the window. UI thread.
#pragma once

#include <string>
#include <vector>

#include "app/desktop/panel.h"

namespace stepladder {

class OpenPanels {
 public:
  OpenPanels() : panels_(all_panels()), open_{panels_.front().id} {}

  const std::vector<Panel>& all() const { return panels_; }
  const std::vector<std::string>& open() const { return open_; }  // ids, left to right; never empty
  bool is_known(const std::string& id) const;
  bool is_open(const std::string& id) const;

  void show(const std::string& id);  // alone; throws std::out_of_range for an unknown one
  void show_beside(const std::string& id);
  void show_all(const std::vector<std::string>& ids);  // instead of the open ones; unknown ones are skipped
  void reset(const std::string& id);                   // as it is in a new project
  void send(const std::string& id, const PanelEvent& event);

  void use_layout(const std::string& ini);  // ImGui's own text; empty: side by side
  void lay_out_again() { layout_is_stale_ = true; }

  // Inside the frame. `lay_out` puts the panels side by side if that is due; the user may drag them from there.
  void lay_out(unsigned dockspace);
  void draw(const Workspace& workspace, Commands& commands);
  void leave(Commands& commands);  // before the window closes

 private:
  std::vector<Panel> panels_;
  std::vector<std::string> open_;
  bool layout_is_stale_ = true;
  bool focus_is_stale_ = true;  // the newest panel gets the keyboard focus
};

}  // namespace stepladder
