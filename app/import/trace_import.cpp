#include "app/import/trace_import.h"

#include <filesystem>
#include <set>

#include "storage/traces/trace.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

std::string name_of(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  for (const std::string_view ending : {".gz", ".json", ".pt.trace", ".sqlite", ".hatchet"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

}  // namespace

ReadTrace read_traces(const TraceFiles& asked, const TraceProgress& progress) {
  const std::filesystem::path first(asked.files.front());
  ReadTrace read{.trace = {.run = asked.run,
                           .name = asked.name.empty() ? name_of(first) : asked.name,
                           .source_path = std::filesystem::absolute(first).string()}};
  std::vector<TracedProcess> ranks;
  std::set<int> known;
  for (const std::string& file : asked.files) {
    const auto share = [&](double of_file) {
      if (progress) progress((static_cast<double>(ranks.size()) + of_file) / static_cast<double>(asked.files.size()));
    };
    try {
      Trace trace = read_trace(file, share);
      if (trace.rank < 0) trace.rank = static_cast<int>(ranks.size());
      if (asked.files.size() > 1 && !known.insert(trace.rank).second)
        throw TraceError("is of rank " + std::to_string(trace.rank) +
                         ", as another file is; import traces of different runs one by one");
      read.trace.format = trace.format;
      read.trace.hardware = trace.hardware;
      read.trace.precision = trace.precision;
      ranks.push_back(attribute_all(trace));
    } catch (const TraceError& error) {
      throw StorageError(file + " " + error.what());
    }
  }
  read.process = ranks.size() == 1 ? std::move(ranks.front()) : join_ranks(std::move(ranks));
  return read;
}

}  // namespace stepladder
