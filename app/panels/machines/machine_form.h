// The Machines view's form: a new machine, or the settings of a known one. UI thread.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

class MachineForm {
 public:
  void open(const Machine& machine);  // with an alias: to change it
  bool is_open() const { return is_open_; }
  void draw(const Workspace& workspace, Commands& commands);

 private:
  std::string problem(const Workspace& workspace) const;
  Machine machine() const;

  bool is_open_ = false;
  bool is_new_ = true;
  bool wants_focus_ = false;
  Machine before_;
  std::string alias_, folder_, program_, partition_, account_, time_;
  int gpus_ = 0, nodes_ = 0;
  bool is_local_ = false;
  bool uses_slurm_ = false;
};

}  // namespace stepladder
