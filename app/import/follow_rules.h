// What the followers of journals, stores and texts share.
#pragma once

#include <chrono>

namespace stepladder {

// A bad piece is "not yet" for so long; and a writer that no process is known to be is gone after so long a silence.
inline constexpr std::chrono::seconds give_up_after(60);

// After a known writer has exited, what it left behind is read for so long.
inline constexpr std::chrono::seconds after_the_writer(2);

inline constexpr std::chrono::seconds between_writer_looks(2);

inline constexpr int deepest_followed_folder = 4;  // below a path that was named

// Somebody else has taken in the same source meanwhile; its position has to be read again.
struct MovedOn {};

}  // namespace stepladder
