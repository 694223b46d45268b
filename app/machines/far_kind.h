// The kinds of commands that are started on machines (FarRun::kind), and what each leaves here.
#pragma once

#include <string_view>

namespace stepladder {

namespace far_kind {

inline constexpr const char* watch = "watch";    // any program
inline constexpr const char* record = "record";  // an experiment of `record run`: its logs stay there
inline constexpr const char* setup = "setup";    // an installation of Stepladder
inline constexpr const char* one_try = "try";    // a command of a series of tries, which takes its output itself

}  // namespace far_kind

// Other kinds have the name of the command that trains: "train", "ladder", "sweep". True if steps arrive here.
inline bool has_runs_here(std::string_view kind) {
  return kind != far_kind::record && kind != far_kind::setup && kind != far_kind::one_try;
}

// The text that is shown in place of runs; empty for kinds that have some.
inline const char* text_without_runs(std::string_view kind) {
  return kind == far_kind::record    ? "an experiment, whose logs stay there"
         : kind == far_kind::setup   ? "installs Stepladder"
         : kind == far_kind::one_try ? "belongs to a series of tries"
                                     : "";
}

}  // namespace stepladder
