#include "storage/traces/trace_file.h"

#include <zlib.h>

#include <string>
#include <system_error>

#include "storage/traces/kineto.h"
#include "storage/traces/nsight.h"
#include "storage/traces/trace_bytes.h"

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

}  // namespace stepladder
