// The state of the view Profile and of the import of traces. Written by app/desktop/profile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/desktop/profile/profile_view.h"

namespace stepladder {

struct ProfileState {
  std::shared_ptr<const ProfileView> view;  // null until the view has asked
  std::string reading;                      // the trace that is being imported; empty: none
  double share = 0;                         // that has been read of it
  std::vector<std::int64_t> imported;       // by this window, oldest first
};

}  // namespace stepladder
