// Kineto's JSON, event by event, for tests.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace stepladder {

// One event of Kineto's JSON; times in microseconds.
inline std::string event(const std::string& category, const std::string& name, const std::string& process, int thread,
                         double start, double duration, const std::string& arguments = "") {
  std::ostringstream text;
  text.precision(15);
  text << R"({"ph": "X", "cat": ")" << category << R"(", "name": ")" << name << R"(", "pid": )" << process
       << R"(, "tid": )" << thread << R"(, "ts": )" << start << R"(, "dur": )" << duration << R"(, "args": {)"
       << arguments << "}}";
  return text.str();
}

inline std::string op(const std::string& name, double start, double duration, const std::string& arguments = "") {
  return event("cpu_op", name, "77", 77, start, duration, arguments);
}
inline std::string cpu_step(int number, double start, double duration) {
  return event("user_annotation", "ProfilerStep#" + std::to_string(number), "77", 77, start, duration);
}
inline std::string launch(int correlation, double start) {
  return event("cuda_runtime", "cudaLaunchKernel", "77", 77, start, 1,
               R"("correlation": )" + std::to_string(correlation));
}
inline std::string kernel(const std::string& name, int stream, int correlation, double start, double duration) {
  return event(
      "kernel", name, "0", stream, start, duration,
      R"("device": 0, "stream": )" + std::to_string(stream) + R"(, "correlation": )" + std::to_string(correlation));
}

inline std::string trace_of(const std::vector<std::string>& events, const std::string& more = "") {
  std::string text = R"({"schemaVersion": 1, )" + more + R"("traceEvents": [)";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "\n") + events[i];
  return text + "]}";
}

}  // namespace stepladder
