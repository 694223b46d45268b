// An importer of text that reads a file piece by piece: the file grows, and somebody else reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

struct ImportedPoints {
  Metric metric;
  std::vector<MetricPoint> points;
};
struct BegunRun {
  Run run;
};
struct EndedRun {
  Run run;
};
using ImportedEvent = std::variant<BegunRun, StepRecord, ImportedPoints, EndedRun>;

// The importer has a thread of its own, which only runs while `give` or `finish` waits for it. What it has told depends
// on all bytes so far and not on how they were cut into pieces, so a reader that begins again tells the same.
class PiecewiseImport {
 public:
  // References outlive this. `head`: the first whole lines of the file; they aren't taken yet.
  PiecewiseImport(const Importer& importer, const ImportOptions& options, std::filesystem::path path, std::string head);
  ~PiecewiseImport();
  PiecewiseImport(const PiecewiseImport&) = delete;
  PiecewiseImport& operator=(const PiecewiseImport&) = delete;

  // The next bytes; the first piece begins with the head. Returns when the importer has read them all.
  void give(std::string bytes);
  void finish();  // there are no more

  // What the importer has told since the last call.
  std::vector<ImportedEvent> take();

  // What it holds back, since the next lines may complete it: it tells that again, complete, later.
  std::vector<ImportedEvent> held() const;

  // Why the importer reads no further; empty if it does.
  const std::string& failure() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace stepladder
