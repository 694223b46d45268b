#include "storage/traces/trace_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "storage/regular_file.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_head = 1 << 20;  // bytes that may show what a file is

// What the first bytes of a gzip file unpack to; empty if they are damaged.
std::string unpacked_beginning(std::string_view packed) {
  z_stream stream{};
  constexpr int gzip = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip) != Z_OK) return "";
  std::string unpacked(longest_head, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  const int result = inflate(&stream, Z_SYNC_FLUSH);
  unpacked.resize(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? unpacked.size() - stream.avail_out
                                                                                    : 0);
  inflateEnd(&stream);
  return unpacked;
}

}  // namespace

std::vector<Trace> read_trace(const std::filesystem::path& file, const TraceProgress& progress) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (std::filesystem::is_directory(status)) throw TraceError("is a folder; give the files of its ranks");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw TraceError("is a pipe or a device; write the trace to a file first");
  {
    TraceBytes bytes(file);
    const std::string_view head = bytes.next();
    if (head.empty()) throw TraceError("is empty");
    if (is_nsight(head)) return read_nsight(file, progress);
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (head[first] != '{' && head[first] != '['))
      throw TraceError(
          "is neither a trace of PyTorch's profiler (JSON, also .gz) nor an SQLite export of Nsight Systems");
  }
  TraceBytes bytes(file, progress);
  std::vector<Trace> traces;
  traces.push_back(read_kineto(bytes));
  TraceOrigin& origin = traces.back().origin;
  origin.host = host_in_name(file.filename().string(), origin.pid);
  return traces;
}

std::string host_in_name(const std::string& name, std::int64_t pid) {
  // HOST_PID.TIME.pt.trace.json
  const std::string process = "_" + std::to_string(pid) + ".";
  const std::size_t at = name.find(process);
  return pid > 0 && at != std::string::npos && name.find(".pt.trace.json", at) != std::string::npos ? name.substr(0, at)
                                                                                                    : "";
}

bool begins_like_trace(std::string_view bytes) {
  const std::string unpacked = bytes.starts_with("\x1f\x8b") ? unpacked_beginning(bytes) : "";
  const std::string_view head = unpacked.empty() ? bytes : unpacked;
  if (is_nsight(head)) return head.find("CUPTI_ACTIVITY_KIND") != std::string_view::npos;
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '{' || head[first] == '[') &&
         (head.find("\"traceEvents\"") != std::string_view::npos || head.find("\"ph\"") != std::string_view::npos);
}

bool looks_like_trace(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  try {
    TraceBytes bytes(file);
    std::string head;
    for (std::string_view piece = bytes.next(); !piece.empty() && head.size() < longest_head; piece = bytes.next())
      head += piece;
    return begins_like_trace(head);
  } catch (const TraceError&) {
    return false;
  }
}

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
    throw TraceError("unpacks to more than " + std::to_string(most_times) + " times its size, as no trace or log does");
  if (file_->progress && file_->size > 0) file_->progress(static_cast<double>(gzoffset(file_->gzip)) / file_->size);
  return {buffer.data(), static_cast<std::size_t>(count)};
}

}  // namespace stepladder
