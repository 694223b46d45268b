#pragma once

#include <stdexcept>

namespace stepladder {

// A file of tokens, weights or a tokenizer that cannot be used, or could not be written. what() is one sentence that
// names the file and the problem.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepladder
