// Long work on a file in slices, so that nobody waits long for the write lock. Inside storage/ only.
#pragma once

#include <functional>

#include "storage/database/database.h"

namespace stepladder {

// Calls `piece` until it returns false. A piece takes a few milliseconds at most. Pieces are written in transactions of
// about 50 ms, and between two of them others get the write lock. If the process is killed, or `piece` throws, the
// slices before stay, so each piece must leave something that can be continued or undone.
//
// Inside a transaction of the caller, everything belongs to that one.
void in_slices(Database& database, const std::function<bool()>& piece);

}  // namespace stepladder
