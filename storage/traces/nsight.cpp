// Reads the tables of an Nsight Systems export through ForeignDatabase: kernels, copies, graphs, launches, NVTX ranges.
// Each process is a trace of its own, since correlation numbers are a process's. Tables are optional, as they depend on
// what was recorded. Operators' numbers and shapes are parsed from emit_nvtx's texts.
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "storage/importers/importer.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/traces/operand_lists.h"
#include "storage/traces/trace_file.h"
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

// A process's number is that of its threads without the thread's own ("serialised global id").
constexpr std::int64_t threads_of_process = 1 << 24;
constexpr std::size_t most_processes = 1'000;

class NsightReader {
 public:
  NsightReader(ForeignDatabase& file, const TraceProgress& progress) : file_(file), progress_(progress) {}

  std::vector<Trace> read() {
    if (!file_.has_tables({"StringIds"}) ||
        !(file_.has_tables({"CUPTI_ACTIVITY_KIND_KERNEL"}) || file_.has_tables({"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"})))
      throw TraceError(
          "is an SQLite database, but not an export of Nsight Systems with kernels (CUPTI_ACTIVITY_KIND_KERNEL)");
    all_rows_ = rows_in_all();
    find_processes();
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_KERNEL"}))
      work("KERNEL", "coalesce(s.value, 'kernel'), 0", "LEFT JOIN StringIds s ON s.id = w.demangledName");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"})) work("GRAPH_TRACE", "'CUDA graph ' || w.graphId, 0");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_MEMCPY"})) work("MEMCPY", "NULL, w.copyKind");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_MEMSET"})) work("MEMSET", "'Memset', 0");
    if (file_.has_tables({"CUPTI_ACTIVITY_KIND_RUNTIME"})) launches();
    if (file_.has_tables({"NVTX_EVENTS"})) ranges();
    const std::string hardware = file_.has_tables({"TARGET_INFO_GPU"}) ? gpu_name() : "";
    file_.check();
    if (traces_.empty()) throw TraceError("holds no kernel");
    for (Trace& trace : traces_) {
      trace.format = "nsight";
      trace.hardware = hardware;
      trace.sort();
    }
    return std::move(traces_);
  }

 private:
  // Processes with work on a GPU, by the first GPU that each uses: its rank, mostly.
  void find_processes() {
    std::map<std::int64_t, std::int64_t> devices;  // by process
    for (const std::string table : {"KERNEL", "GRAPH_TRACE"}) {
      if (!file_.has_tables({"CUPTI_ACTIVITY_KIND_" + table})) continue;
      Statement rows(file_.get(), "SELECT globalPid, min(deviceId) FROM CUPTI_ACTIVITY_KIND_" + table +
                                      " GROUP BY globalPid LIMIT " + std::to_string(most_processes + 1));
      while (rows.step()) {
        const auto [known, is_new] = devices.try_emplace(rows.integer(0), rows.integer(1));
        if (!is_new) known->second = std::min(known->second, rows.integer(1));
      }
    }
    if (devices.size() > most_processes) throw TraceError(fmt::format("holds more than {} processes", most_processes));
    std::vector<std::pair<std::int64_t, std::int64_t>> order;
    for (const auto& [process, device] : devices) order.emplace_back(device, process);
    std::ranges::sort(order);
    for (const auto& [device, process] : order) numbers_.emplace(process, numbers_.size());
    traces_.resize(order.size());
  }

  // Null: a process without work on a GPU. Slices of no process belong to the only one.
  Trace* trace_of(std::int64_t process) {
    const auto found = numbers_.find(process);
    if (found != numbers_.end()) return &traces_[found->second];
    return traces_.size() == 1 && process < threads_of_process ? &traces_.front() : nullptr;
  }
  Trace* trace_of_thread(std::int64_t thread) { return trace_of(thread - thread % threads_of_process); }

  // `columns`: the name, and the kind of a copy.
  void work(const std::string& table, const std::string& columns, const std::string& join = "") {
    const std::string source = "CUPTI_ACTIVITY_KIND_" + table;
    const std::string process = file_.has_column(source, "globalPid") ? "w.globalPid" : "0";
    Statement rows(file_.get(), "SELECT w.start, w.end, w.deviceId, w.streamId, w.correlationId, " + process + ", " +
                                    columns + " FROM " + source + " w " + join);
    while (rows.step()) {
      count_row();
      Trace* const trace = trace_of(rows.integer(5));
      if (!trace) continue;
      std::string name = rows.text(6);
      if (name.empty()) name = copy_name(rows.integer(7));
      trace->add({.start_ns = rows.integer(0),
                  .duration_ns = from_to(rows.integer(0), rows.integer(1)),
                  .name = trace->name(name),
                  .correlation = static_cast<std::uint32_t>(rows.integer(4)),
                  .lane = trace->lane({fmt::format("device {}", rows.integer(2)), std::to_string(rows.integer(3))}),
                  .kind = SliceKind::kernel});
    }
  }

  void launches() {
    Statement rows(file_.get(), "SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    while (rows.step()) {
      count_row();
      Trace* const trace = trace_of_thread(rows.integer(2));
      if (!trace) continue;
      trace->add({.start_ns = rows.integer(0),
                  .duration_ns = from_to(rows.integer(0), rows.integer(1)),
                  .correlation = static_cast<std::uint32_t>(rows.integer(3)),
                  .lane = trace->lane({"threads", std::to_string(rows.integer(2))}),
                  .kind = SliceKind::launch});
    }
  }

  std::string gpu_name() {
    Statement row(file_.get(), "SELECT name FROM TARGET_INFO_GPU ORDER BY id LIMIT 1");
    return row.step() ? row.text(0) : "";
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
      Trace* const trace = trace_of_thread(rows.integer(2));
      if (!trace) continue;
      std::string name = rows.text(3);
      std::int64_t sequence = -1;
      const std::string numbers = take_numbers(name);
      if (const std::size_t at = numbers.find(sequence_word); at != std::string::npos)
        std::from_chars(numbers.data() + at + sequence_word.size(), numbers.data() + numbers.size(), sequence);
      operands_.clear();
      if (const std::size_t at = numbers.find(sizes_word); at != std::string::npos)
        operands_.read_sizes(std::string_view(numbers).substr(at, numbers.find(inputs_word) - at));
      const std::int64_t step = range_step(name);
      trace->add({.start_ns = rows.integer(0),
                  .duration_ns = from_to(rows.integer(0), rows.integer(1)),
                  .name = trace->name(name),
                  .operands = trace->operands(name, operands_.operands()),
                  .correlation = static_cast<std::uint32_t>(std::max<std::int64_t>(step >= 0 ? step : sequence + 1, 0)),
                  .lane = trace->lane({"threads", std::to_string(rows.integer(2))}),
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
    for (const std::string table :
         {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_MEMCPY",
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
  std::int64_t rows_ = 0, all_rows_ = 1;         // read, and in the tables that are
  OperandLists operands_;                        // of the range
  std::vector<Trace> traces_;                    // of the processes
  std::map<std::int64_t, std::size_t> numbers_;  // of the processes, by their ids
};

// An export that was packed with gzip, unpacked: SQLite needs a file.
class UnpackedExport {
 public:
  explicit UnpackedExport(const std::filesystem::path& packed) {
    std::string folder = (std::filesystem::temp_directory_path() / "stepladder-trace-XXXXXX").string();
    if (!mkdtemp(folder.data())) throw TraceError("can't be unpacked: no temporary folder could be created");
    folder_ = folder;
    std::ofstream out(file(), std::ios::binary);
    TraceBytes bytes(packed);
    for (std::string_view piece = bytes.next(); !piece.empty(); piece = bytes.next())
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (!out.flush()) throw TraceError("can't be unpacked: the temporary folder is full");
  }
  UnpackedExport(const UnpackedExport&) = delete;
  UnpackedExport& operator=(const UnpackedExport&) = delete;
  ~UnpackedExport() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  std::filesystem::path file() const { return folder_ / "export.sqlite"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace

bool is_nsight(std::string_view head) {
  return is_sqlite(head);
}

std::vector<Trace> read_nsight(const std::filesystem::path& file, const TraceProgress& progress) {
  if (!is_sqlite_file(file)) return read_nsight(UnpackedExport(file).file(), progress);
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
