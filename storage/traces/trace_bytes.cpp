#include "storage/traces/trace_bytes.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "storage/regular_file.h"
#include "storage/traces/trace.h"

namespace stepladder {
namespace {

// Traces of PyTorch's profiler compress 10 to 30 times. Deflate compresses at most 1,032 times, so a file of 8 MB could
// otherwise keep the reader busy for minutes with bytes that mean nothing.
constexpr std::int64_t most_times = 200;
constexpr std::int64_t always_unpacked = 64 << 20;  // bytes, whatever their packed size

}  // namespace

struct TraceBytes::File {
  gzFile gzip = nullptr;  // also reads files that aren't gzip
  std::vector<char> buffer = std::vector<char>(1 << 18);
  std::int64_t bytes = 0;
  double size = 0;  // of the file itself; 0: not known, as of a pipe
  TraceProgress progress;
};

TraceBytes::TraceBytes(const std::filesystem::path& file, TraceProgress progress) : file_(std::make_unique<File>()) {
  file_->progress = std::move(progress);
  std::string why;
  Descriptor descriptor = open_regular(file, why);
  if (!descriptor) throw TraceError(why);
  struct stat about {};
  if (::fstat(descriptor.get(), &about) == 0) file_->size = static_cast<double>(about.st_size);
  file_->gzip = gzdopen(descriptor.get(), "rb");
  if (!file_->gzip) throw TraceError("cannot be opened");
  descriptor.release();
  gzbuffer(file_->gzip, 1 << 18);
}

TraceBytes::~TraceBytes() {
  gzclose_r(file_->gzip);
}

std::string_view TraceBytes::next() {
  std::vector<char>& buffer = file_->buffer;
  const int count = gzread(file_->gzip, buffer.data(), static_cast<unsigned>(buffer.size()));
  int error = Z_OK;
  gzerror(file_->gzip, &error);
  if (count < 0 || error == Z_BUF_ERROR) {
    if (error == Z_ERRNO) throw TraceError(std::string("cannot be read: ") + std::strerror(errno));
    throw TraceError(error == Z_BUF_ERROR ? "is cut off: its gzip data has no end" : "holds damaged gzip data");
  }
  file_->bytes += count;
  if (file_->bytes > most_bytes) throw TraceError("is larger than 8 GiB");
  if (file_->bytes > always_unpacked && !gzdirect(file_->gzip) &&
      file_->bytes / most_times > std::max<std::int64_t>(gzoffset(file_->gzip), 1))
    throw TraceError("unpacks to more than " + std::to_string(most_times) + " times its size, as no trace does");
  if (file_->progress && file_->size > 0) file_->progress(static_cast<double>(gzoffset(file_->gzip)) / file_->size);
  return {buffer.data(), static_cast<std::size_t>(count)};
}

}  // namespace stepladder
