// The ways in which parts of steps are merged into the stored records of these steps.
#pragma once

namespace stepladder {

enum class Completion {
  replace,        // what a part knows replaces what the file has; no earlier attempt is kept
  keep_repeated,  // the same, but a step whose loss or validation loss is known already is kept as an earlier attempt
  fill,           // a part only adds what the file doesn't know
};

}  // namespace stepladder
