// For git, tar and the desktop's helpers, and for Slurm's and nvidia-smi in the far program.
#include "app/process/awaited_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace stepladder {
namespace {

Descriptor stream_file(std::string_view content = {}) {
  Descriptor file(::memfd_create("stepladder-stream", MFD_CLOEXEC));
  if (!file)
    if (std::FILE* const temporary = std::tmpfile()) {  // before Linux 3.17
      file = Descriptor(::fcntl(::fileno(temporary), F_DUPFD_CLOEXEC, 0));
      std::fclose(temporary);
    }
  if (!file || !write_at(file.get(), 0, content))
    throw std::system_error(errno, std::generic_category(), "a program's streams cannot be opened");
  return file;
}

Launch with_streams(Launch launch, const Descriptor& input, const Descriptor& output, const Descriptor& errors) {
  launch.input = input.get(), launch.output = output.get(), launch.errors = errors.get();
  return launch;
}

}  // namespace

AwaitedProgram::AwaitedProgram(Launch launch, std::string_view input)
    : input_(stream_file(input)),
      output_(stream_file()),
      errors_(stream_file()),
      process_(with_streams(std::move(launch), input_, output_, errors_)) {}

std::string AwaitedProgram::content(const Descriptor& file, std::size_t most) {
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0) return {};
  return read_at(file.get(), 0, std::min(most, static_cast<std::size_t>(facts.st_size)));
}

}  // namespace stepladder
