// Reads the tables of an Nsight Systems export through ForeignDatabase: kernels, copies, launches, NVTX ranges. Tables
// are optional, as they depend on what was recorded. Operators' numbers and shapes are parsed from emit_nvtx's texts.
#include "storage/traces/nsight.h"

#include <algorithm>
#include <charconv>

#include "storage/importers/importer.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/traces/operand_lists.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

std::string copy_name(std::int64_t kind) {
  switch (kind) {  // CUPTI's CUpti_ActivityMemcpyKind
    case 1:
      return "Memcpy HtoD";
    case 2:
      return "Memcpy DtoH";
    case 8:
      return "Memcpy DtoD";
    case 10:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

std::int64_t from_to(std::int64_t start, std::int64_t end) {
  std::int64_t duration = 0;
  if (__builtin_sub_overflow(end, start, &duration)) throw TraceError("has a slice at an impossible time");
  return duration;
}

class NsightReader {
 public:
  NsightReader(ForeignDatabase& file, const TraceProgress& progress) : file_(file), progress_(progress) {
    trace_.format = "nsight";
  }

  Trace read() {
    if (!file_.has_tables({"StringIds", "CUPTI_ACTIVITY_KIND_KERNEL"}))
      throw TraceError(
          "is an SQLite database, but not an export of Nsight Systems with kernels (CUPTI_ACTIVITY_KIND_KERNEL)");
    Statement processes(file_.get(), "SELECT count(DISTINCT globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL");
    if (processes.step() && processes.integer(0) > 1)
      throw TraceError(fmt::format("holds {} processes; export each into a file of its own", processes.integer(0)));
    all_rows_ = rows_in_all();
    work(
        "SELECT k.start, k.end, k.deviceId, k.streamId, k.correlationId, s.value, 0 FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "LEFT JOIN StringIds s ON s.id = k.demangledName",
        "kernel");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_MEMCPY"}))
      work("SELECT start, end, deviceId, streamId, correlationId, NULL, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY", "");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_MEMSET"}))
      work("SELECT start, end, deviceId, streamId, correlationId, 'Memset', 0 FROM CUPTI_ACTIVITY_KIND_MEMSET", "");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_RUNTIME"})) launches();
    if (file_.has_tables({"NVTX_EVENTS"})) ranges();
    if (file_.has_tables({"TARGET_INFO_GPU"})) name_gpu();
    file_.check();
    if (trace_.slices().empty()) throw TraceError("holds no kernel");
    trace_.sort();
    return std::move(trace_);
  }

 private:
  void work(std::string_view sql, const std::string& unnamed) {
    Statement rows(file_.get(), sql);
    while (rows.step()) {
      count_row();
      std::string name = rows.text(5);
      if (name.empty()) name = unnamed.empty() ? copy_name(rows.integer(6)) : unnamed;
      trace_.add({.start_ns = rows.integer(0),
                  .duration_ns = from_to(rows.integer(0), rows.integer(1)),
                  .name = trace_.name(name),
                  .correlation = static_cast<std::uint32_t>(rows.integer(4)),
                  .lane = trace_.lane({fmt::format("device {}", rows.integer(2)), std::to_string(rows.integer(3))}),
                  .kind = SliceKind::kernel});
    }
  }

  void launches() {
    Statement rows(file_.get(), "SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    while (rows.step()) {
      count_row();
      trace_.add({.start_ns = rows.integer(0),
                  .duration_ns = from_to(rows.integer(0), rows.integer(1)),
                  .correlation = static_cast<std::uint32_t>(rows.integer(3)),
                  .lane = trace_.lane({"threads", std::to_string(rows.integer(2))}),
                  .kind = SliceKind::launch});
    }
  }

  void name_gpu() {
    Statement row(file_.get(), "SELECT name FROM TARGET_INFO_GPU ORDER BY id LIMIT 1");
    if (row.step()) trace_.hardware = row.text(0);
  }

  // Ranges that the program pushed and popped. Those of PyTorch's emit_nvtx have its operators' names, numbers and,
  // with record_shapes=True, shapes: "aten::mm, seq = 12, op_id = 34, sizes = [[128, 64], [64, 256]]".
  void ranges() {
    Statement rows(
        file_.get(),
        "SELECT e.start, e.end, e.globalTid, coalesce(e.text, s.value) FROM NVTX_EVENTS e LEFT JOIN StringIds "
        "s ON s.id = e.textId WHERE e.end IS NOT NULL AND e.eventType IN (59, 60)");
    while (rows.step()) {
      count_row();
      std::string name = rows.text(3);
      std::int64_t sequence = -1;
      const std::string numbers = take_numbers(name);
      if (const std::size_t at = numbers.find(sequence_word); at != std::string::npos)
        std::from_chars(numbers.data() + at + sequence_word.size(), numbers.data() + numbers.size(), sequence);
      operands_.clear();
      if (const std::size_t at = numbers.find(sizes_word); at != std::string::npos)
        operands_.read_sizes(std::string_view(numbers).substr(at, numbers.find(inputs_word) - at));
      const std::int64_t step = range_step(name);
      trace_.add({.start_ns = rows.integer(0),
                  .duration_ns = from_to(rows.integer(0), rows.integer(1)),
                  .name = trace_.name(name),
                  .operands = trace_.operands(name, operands_.operands()),
                  .correlation = static_cast<std::uint32_t>(std::max<std::int64_t>(step >= 0 ? step : sequence + 1, 0)),
                  .lane = trace_.lane({"threads", std::to_string(rows.integer(2))}),
                  .kind = step >= 0 ? SliceKind::step : SliceKind::operation});
    }
  }

  static constexpr std::string_view sequence_word = ", seq = ", id_word = ", op_id = ", sizes_word = ", sizes = ",
                                    inputs_word = ", input_op_ids = ";

  // Cuts off what emit_nvtx appends to an operator's name.
  static std::string take_numbers(std::string& name) {
    std::size_t end = name.size();
    for (const std::string_view word : {sequence_word, id_word, sizes_word, inputs_word})
      end = std::min(end, name.find(word));
    const std::string numbers = name.substr(end);
    name.resize(end);
    return numbers;
  }

  std::int64_t rows_in_all() {
    std::int64_t rows = 0;
    for (const std::string table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"}) {
      if (!file_.has_tables({table})) continue;
      Statement count(file_.get(), "SELECT count(*) FROM " + table);
      if (count.step()) rows += count.integer(0);
    }
    return rows;
  }
  void count_row() {
    constexpr std::int64_t between = 10'000;
    if (++rows_ % between == 0 && progress_) progress_(static_cast<double>(rows_) / static_cast<double>(all_rows_));
  }

  ForeignDatabase& file_;
  const TraceProgress& progress_;
  std::int64_t rows_ = 0, all_rows_ = 1;  // read, and in the tables that are
  OperandLists operands_;                 // of the range
  Trace trace_;
};

}  // namespace

bool is_nsight(std::string_view head) {
  return is_sqlite(head);
}

Trace read_nsight(const std::filesystem::path& file, const TraceProgress& progress) {
  try {
    ForeignDatabase database(file);
    return NsightReader(database, progress).read();
  } catch (const ImportError& error) {
    throw TraceError(error.what());
  } catch (const StorageError& error) {
    std::string what = error.what();  // begins with the file's name, which the caller adds
    const std::string name = file.string() + " ";
    if (what.starts_with(name)) what = what.substr(name.size());
    throw TraceError(what);
  }
}

}  // namespace stepladder
