// A program whose output is read once it has ended. Its streams are files without a name rather than pipes: it never
// waits for us, and one that outlives this program can still write.
#pragma once

#include <string>
#include <string_view>

#include "storage/process.h"

namespace stepladder {

class AwaitedProgram {
 public:
  // `launch` names no streams; the program reads `input`. Throws std::system_error.
  explicit AwaitedProgram(Launch launch, std::string_view input = {});

  Process& process() { return process_; }
  const Process& process() const { return process_; }
  // At most the first so many bytes that it has printed so far.
  std::string output(std::size_t most = all) const { return content(output_, most); }
  std::string errors(std::size_t most = all) const { return content(errors_, most); }

 private:
  static constexpr std::size_t all = ~std::size_t{0};
  static std::string content(const Descriptor& file, std::size_t most);

  const Descriptor input_, output_, errors_;
  Process process_;
};

}  // namespace stepladder
