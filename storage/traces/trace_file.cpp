#include "storage/traces/trace_file.h"

#include <system_error>

#include "storage/traces/kineto.h"
#include "storage/traces/nsight.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

Trace read_trace(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) throw TraceError("is a folder; give the files of its ranks");
  {
    TraceBytes bytes(file);
    const std::string_view head = bytes.next();
    if (head.empty()) throw TraceError("is empty");
    if (is_nsight(head)) return read_nsight(file);
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (head[first] != '{' && head[first] != '['))
      throw TraceError(
          "is neither a trace of PyTorch's profiler (JSON, also .gz) nor an SQLite export of Nsight Systems");
  }
  TraceBytes bytes(file);
  return read_kineto(bytes);
}

}  // namespace stepladder
