// The command of the Record view.
#pragma once

#include "app/desktop/command.h"
#include "app/desktop/models/record_view.h"

namespace stepladder {

struct JudgeRecord {  // a pool, on another thread
  RecordQuestion question;
};

}  // namespace stepladder
