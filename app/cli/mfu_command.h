// `stepladder mfu`: utilisation by every convention, and MosaicML's published tables beside their recomputation.
#pragma once

#include <string>
#include <vector>

#include "app/cli/report.h"
#include "storage/analysis/mfu.h"

namespace CLI {
class App;
}

namespace stepladder {

struct MfuQuestion {
  ModelShape shape;
  double tokens_per_s = missing;
  int gpus = 1;
  std::string gpu;
  std::string precision = "bf16";
  double peak_tflops = missing;  // of one device; overrides the table's
  bool recomputed = false;       // activations are recomputed, so HFU is more than MFU

  void add_to(CLI::App& command);
};

struct MfuAnswer {
  MfuQuestion question;
  double peak_tflops = missing;  // of one device
  std::string peak_source;
  struct Row {
    MfuConvention convention;
    double flops_per_token = missing;
    double mfu = missing;
    double hfu = missing;
  };
  std::vector<Row> rows;  // one for each convention
};

// Throws UsageError where the question lacks parameters, or names hardware that the table does not know.
MfuAnswer answer_mfu(const MfuQuestion& question, const HardwareTable& hardware);
Json mfu_json(const MfuAnswer& answer);
std::string mfu_text(const MfuAnswer& answer);

Json published_json(const std::vector<PublishedRow>& rows);
std::string published_table(const std::vector<PublishedRow>& rows);

}  // namespace stepladder
