// Commands about saved views.
#pragma once

#include <string>

#include "app/desktop/command.h"

namespace stepladder {

struct SaveView {  // what the window shows, replacing a view of that name
  std::string name;
};
struct SaveViewAs {  // this text, unless there is a view of that name
  std::string name;
  std::string content;
};
struct OpenView {
  std::string name;
};
struct RenameView {
  std::string from;
  std::string to;
};
struct DeleteView {  // with an undo
  std::string name;
};

// Throws StorageError or DataError if it can't be read.
void open_view(DesktopState& desktop, const std::string& name);

}  // namespace stepladder
