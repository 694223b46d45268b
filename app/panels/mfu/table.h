// The MFU view's table: the project's runs next to MosaicML's published ones. UI thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/desktop/models/run_columns.h"
#include "app/panels/mfu/calculator.h"

namespace stepladder {

struct MfuRow {
  RunId run = 0;              // 0: published
  std::size_t published = 0;  // index of the published row
  std::string name;
  std::string hardware;
  int devices = 1;
  std::int64_t seq = 0;
  std::int64_t params = 0;
  double tokens_per_s = missing;
  double stated = missing;    // as published, by the nearest convention that was published
  double computed = missing;  // by the same convention
  double mfu = missing;       // by the view's convention
  std::string remark;         // the assumption, or why the figure is missing
  bool is_assumed = false;
  SpeedDoubt doubt = {};  // in the throughput of a run
  bool is_example = false;

  double difference() const { return is_missing(stated) ? missing : computed - stated; }
};

enum MfuColumn {
  column_name,
  column_hardware,
  column_seq,
  column_params,
  column_tokens,
  column_said,
  column_computed,
  column_difference,
  column_mfu,
  column_count
};

struct MfuTable {
  std::vector<MfuRow> rows;
  bool has_read = false;
  std::vector<PublishedRow> published;
  std::string published_problem, seen_imported;
  std::array<char, 128> filter{};

  std::vector<std::size_t> shown;  // of the rows, in order; rebuilt when these change
  std::string seen_filter;
  bool must_sort = true;
  int sorted_by = column_mfu;
  bool ascending = false;
};

void derive_rows(MfuTable& table, const Workspace& workspace, MfuConvention convention);
std::string published_range(const MfuTable& table);  // "30.1 % to 62.3 %"; empty if nothing is known

// A click on a row copies its numbers into the form.
void draw_mfu_table(MfuTable& table, MfuForm& form, MfuConvention convention, const Workspace& workspace);

}  // namespace stepladder
