#include "storage/traces/trace_file.h"

#include <string>
#include <system_error>

#include "storage/traces/kineto.h"
#include "storage/traces/nsight.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

Trace read_trace(const std::filesystem::path& file, const TraceProgress& progress) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) throw TraceError("is a folder; give the files of its ranks");
  {
    TraceBytes bytes(file);
    const std::string_view head = bytes.next();
    if (head.empty()) throw TraceError("is empty");
    if (is_nsight(head)) return read_nsight(file);
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (head.find("Kernel type summaries:") != std::string_view::npos)
      throw TraceError(
          "is llm.c's table of kernels, each of which Nsight Compute ran alone: it has no step to add up; import an "
          "SQLite export of Nsight Systems");
    if (first == std::string_view::npos || (head[first] != '{' && head[first] != '['))
      throw TraceError(
          "is neither a trace of PyTorch's profiler (JSON, also .gz) nor an SQLite export of Nsight Systems");
  }
  TraceBytes bytes(file, progress);
  return read_kineto(bytes);
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
