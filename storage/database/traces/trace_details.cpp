// SQL for a trace's anatomy and its packed slices, beside the sums of trace_store.cpp. Enum values are stored by their
// names, so a name in to_string is part of the file format.
#include "storage/database/traces/trace_details.h"

#include <algorithm>

#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/traces/trace.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// The value whose name is `text`; the first if none is.
template <class Values>
auto value_named(const Values& values, const std::string& text) {
  const auto found = std::ranges::find_if(values, [&](auto each) { return to_string(each) == text; });
  return found == values.end() ? values.front() : *found;
}

}  // namespace

void TraceDetails::insert(TraceId trace, const Anatomy& anatomy, const std::vector<KeptStep>& kept) {
  Transaction transaction(database_);
  std::int64_t place = 0;
  for (const AnatomyRow& each : anatomy) {
    database_.insert("INTO trace_anatomy", "trace_id, place, phase, part, block, known_by, ms", trace, place++,
                     to_string(each.phase), to_string(each.part), each.block < 0 ? std::optional<int>() : each.block,
                     to_string(each.known_by), each.ms);
  }
  for (const KeptStep& each : kept) {
    database_.insert("INTO trace_slices", "trace_id, rank, step, slices, packed", trace, each.rank, each.step,
                     each.slices, Blob{each.packed});
  }
  transaction.commit();
}

Anatomy TraceDetails::anatomy(TraceId trace) {
  Statement rows(database_,
                 "SELECT phase, part, block, known_by, ms FROM trace_anatomy WHERE trace_id = ? ORDER BY place", trace);
  Anatomy anatomy;
  while (rows.step()) {
    AnatomyRow row{.phase = value_named(all_step_phases, std::string(in_words(rows.text(0)))),
                   .part = value_named(all_model_parts, rows.text(1)),
                   .known_by = value_named(all_known_by, rows.text(3)),
                   .ms = measure_of(rows, 4)};
    if (!rows.is_null(2)) row.block = static_cast<int>(std::clamp<std::int64_t>(rows.integer(2), 0, 100'000));
    anatomy.push_back(row);
  }
  return anatomy;
}

std::vector<KeptStepName> TraceDetails::steps(TraceId trace) {
  return read_all(
      Statement(database_, "SELECT rank, step, slices FROM trace_slices WHERE trace_id = ? ORDER BY rank, step", trace),
      [](const Statement& row) {
        return KeptStepName{.rank = static_cast<int>(row.integer(0)), .step = row.integer(1), .slices = row.integer(2)};
      });
}

StepSlices TraceDetails::slices(TraceId trace, int rank, std::int64_t step) {
  Statement row(database_, "SELECT packed FROM trace_slices WHERE trace_id = ? AND rank = ? AND step = ?", trace, rank,
                step);
  const std::string what = fmt::format("trace {}, step {} of rank {}", trace, step, rank);
  if (!row.step()) throw StorageError(what + " has no slices");
  try {
    return unpack(row.blob(0));
  } catch (const TraceError& error) {
    throw StorageError(what + " " + error.what());
  }
}

std::vector<KeptStep> TraceDetails::kept(TraceId trace) {
  return read_all(
      Statement(database_, "SELECT rank, step, slices, packed FROM trace_slices WHERE trace_id = ? ORDER BY rank, step",
                trace),
      [](const Statement& row) {
        return KeptStep{.rank = static_cast<int>(row.integer(0)),
                        .step = row.integer(1),
                        .slices = row.integer(2),
                        .packed = std::string(row.blob(3))};
      });
}

double TraceDetails::imported_at(TraceId trace) {
  Statement row(database_, "SELECT imported_at FROM traces WHERE id = ?", trace);
  return row.step() ? row.real(0) : missing;
}

std::vector<RunId> TraceDetails::timed_runs() {
  return database_.integers(
      "SELECT run_id FROM profiles WHERE NOT EXISTS (SELECT 1 FROM curation WHERE curation.run_id = "
      "profiles.run_id AND deleted_at IS NOT NULL) ORDER BY run_id");
}

TraceId keep_trace(TraceStore& store, StoredTrace trace, const TracedProcess& process) {
  trace.profile = process.profile;
  TraceId id = 0;
  store.in_one_transaction([&] {
    id = store.insert(trace);
    store.details().insert(id, process.anatomy, process.kept);
  });
  return id;
}

}  // namespace stepladder
