#include "storage/traces/trace_file.h"

#include <string>
#include <system_error>

#include "storage/traces/kineto.h"
#include "storage/traces/nsight.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

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
  return traces;
}

bool looks_like_trace(const std::filesystem::path& file) {
  constexpr std::size_t most = 1 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  try {
    TraceBytes bytes(file);
    std::string head;
    for (std::string_view piece = bytes.next(); !piece.empty() && head.size() < most; piece = bytes.next())
      head += piece;
    if (is_nsight(head)) return head.find("CUPTI_ACTIVITY_KIND") != std::string::npos;
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    return first != std::string::npos && (head[first] == '{' || head[first] == '[') &&
           (head.find("\"traceEvents\"") != std::string::npos || head.find("\"ph\"") != std::string::npos);
  } catch (const TraceError&) {
    return false;
  }
}

}  // namespace stepladder
