// Writes kept steps for other viewers: one Layout numbers processes and tracks, then Chrome's JSON or Perfetto's
// protobuf is written from it. Slices of one track must nest, so kernels that overlap on a stream get tracks of their
// own.
#include "app/figures/step_trace.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>

#include "app/runs/run_json.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// A slice's place in the file. Times are since the file's first slice.
struct Placed {
  const StepSlices* step;
  const SliceRow* row;
  const KeptSlice* slice;
  std::uint64_t start_ns, end_ns;
  int process, track;  // from 1
  int stream;          // the track of its lane's first row: kernels that overlap on a stream are still of that stream
};

// The memory in use from this moment on.
struct PlacedMemory {
  const MemoryPoint* point;
  std::uint64_t at_ns;
  int process;
};

// A GPU's step, from its beginning to the next one's.
struct PlacedWindow {
  const StepSlices* step;
  std::uint64_t start_ns, end_ns;
};

struct Track {
  int process;
  std::string title;
  bool on_gpu;
};

// Numbers the tracks, and places the slices of each in the order in which they begin, the outer ones first.
class Layout {
 public:
  explicit Layout(const StepTrace& trace) {
    std::int64_t first = 0;
    for (const PlacedStep& step : trace.steps) first = std::min(first, start_of(step) + first_ns(step.slices));
    for (const PlacedStep& step : trace.steps) {
      for (const MemoryPoint& point : step.slices.memory)
        memory.push_back({&point,
                          static_cast<std::uint64_t>(std::max(start_of(step) + point.at_ns - first, std::int64_t{0})),
                          step.slices.rank + 1});
      if (std::ranges::any_of(step.slices.lanes, &SliceLane::on_gpu)) {
        const auto start = static_cast<std::uint64_t>(start_of(step) - first);
        windows.push_back({&step.slices, start, start + static_cast<std::uint64_t>(step.slices.length_ns)});
      }
      for (const SliceRow& row : step.slices.rows) {
        const int track = track_of(step.slices, row), stream = track_of(step.slices, row, false);
        for (const KeptSlice& slice : row.slices) {
          const auto start = static_cast<std::uint64_t>(start_of(step) + slice.start_ns - first);
          slices.push_back({&step.slices, &row, &slice, start, start + static_cast<std::uint64_t>(slice.duration_ns),
                            step.slices.rank + 1, track, stream});
        }
      }
    }
    std::ranges::stable_sort(slices, [](const Placed& a, const Placed& b) {
      return std::tuple(a.track, a.start_ns, a.row->depth) < std::tuple(b.track, b.start_ns, b.row->depth);
    });
  }

  std::vector<Placed> slices;
  std::vector<PlacedWindow> windows;
  std::vector<PlacedMemory> memory;  // by process, then time
  std::vector<Track> tracks;         // number - 1

 private:
  // Within thirty years, so that sums with a step's own times don't overflow.
  static std::int64_t start_of(const PlacedStep& step) {
    constexpr double farthest_ms = 1e12;
    return whole_number(std::clamp(step.start_ms, -farthest_ms, farthest_ms) * 1e6);
  }

  // Kernels that run beside each other on one stream need tracks of their own: slices of a track nest.
  int track_of(const StepSlices& step, const SliceRow& row, bool is_own = true) {
    const SliceLane& lane = step.lanes[row.lane];
    const std::uint32_t beside = lane.on_gpu && is_own ? row.depth : 0;
    const auto [known, is_new] = numbers_.try_emplace(std::tuple(step.rank, lane.on_gpu, lane.title, beside),
                                                      static_cast<int>(tracks.size()) + 1);
    if (is_new)
      tracks.push_back({step.rank + 1, lane.title + (beside > 0 ? fmt::format(" ({})", beside + 1) : ""), lane.on_gpu});
    return known->second;
  }

  std::map<std::tuple<int, bool, std::string, std::uint32_t>, int> numbers_;
};

std::string process_title(const StepTrace& trace, int process) {
  return fmt::format("{}, rank {}", trace.name, process - 1);
}

// Microseconds with all their nanoseconds.
std::string microseconds(std::uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "cudaLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel": the call that asks a GPU for work.
bool is_launch(std::string_view name) {
  for (const std::string_view api : {"cuda", "hip", "cu"})
    if (name.size() > api.size() && name.starts_with(api) && name[api.size()] >= 'A' && name[api.size()] <= 'Z')
      return true;
  return false;
}

// PyTorch's traces have a GPU's number as its process; a CPU's process is none of these.
std::string chrome_process(int process, bool on_gpu) {
  constexpr int behind_all_gpus = 1'000'000;
  return std::to_string(process - 1 + (on_gpu ? 0 : behind_all_gpus));
}

const char* category_of(const Placed& placed, const std::string& name) {
  if (placed.step->lanes[placed.row->lane].on_gpu)
    return name.starts_with("Memcpy") ? "gpu_memcpy" : name.starts_with("Memset") ? "gpu_memset" : "kernel";
  if (placed.slice->correlation != 0 || is_launch(name)) return "cuda_runtime";
  return name.starts_with("ProfilerStep#") ? "user_annotation" : "cpu_op";
}

// The wire format of protocol buffers: fields of numbers and of bytes.
class Message {
 public:
  struct Field {
    Field(int number, std::uint64_t value) : key(static_cast<std::uint64_t>(number) << 3), value(value) {}
    Field(int number, std::string_view bytes)
        : key(static_cast<std::uint64_t>(number) << 3 | 2), value(bytes.size()), text(bytes) {}
    Field(int number, const Message& message) : Field(number, message.text()) {}
    std::uint64_t key, value;
    std::string_view text;
  };
  Message(std::initializer_list<Field> fields = {}) {
    for (const Field& field : fields) add(field);
  }
  void add(const Field& field) {
    varint(field.key);
    varint(field.value);
    bytes_ += field.text;
  }
  std::string_view text() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// The numbers of the fields that are written (perfetto/protos/perfetto/trace/perfetto_trace.proto).
namespace field {
constexpr int packet = 1;  // Trace
constexpr int timestamp = 8, sequence_id = 10, track_event = 11, interned_data = 12, flags = 13,
              track_descriptor = 60;                                                            // TracePacket
constexpr int uuid = 1, track_name = 2, process = 3, thread = 4, parent_uuid = 5, counter = 8;  // TrackDescriptor
constexpr int counter_unit = 3;                                                                 // CounterDescriptor
constexpr int process_pid = 1, process_name = 6;                                                // ProcessDescriptor
constexpr int thread_pid = 1, thread_tid = 2, thread_name = 5;                                  // ThreadDescriptor
constexpr int event_type = 9, event_name_iid = 10, event_track = 11, event_category_iid = 3,
              counter_value = 30;                                                                // TrackEvent
constexpr int interned_categories = 1, interned_names = 2, interned_iid = 1, interned_text = 2;  // InternedData
}  // namespace field
constexpr std::uint64_t state_cleared = 1, needs_state = 2, slice_begin = 1, slice_end = 2, counter = 4, size_bytes = 3;

class PerfettoWriter {
 public:
  PerfettoWriter(const StepTrace& trace, const Sink& sink) : trace_(trace), sink_(sink) {}

  void write() {
    const Layout layout(trace_);
    describe(layout);
    std::vector<const Placed*> open;
    const auto close_until = [&](std::uint64_t ns) {
      while (!open.empty() && open.back()->end_ns <= ns) {
        event(*open.back(), slice_end, open.back()->end_ns);
        open.pop_back();
      }
    };
    for (const Placed& placed : layout.slices) {
      if (!open.empty() && open.back()->track != placed.track) close_until(UINT64_MAX);
      close_until(placed.start_ns);
      event(placed, slice_begin, placed.start_ns);
      open.push_back(&placed);
    }
    close_until(UINT64_MAX);
    for (const PlacedMemory& each : layout.memory) count(each);
    flush();
  }

 private:
  static std::uint64_t process_uuid(int process) { return 1'000'000 + static_cast<std::uint64_t>(process); }

  void packet(const Message& packet) {
    text_ += Message{{field::packet, packet}}.text();
    if (text_.size() > 1 << 20) flush();
  }
  void flush() {
    if (!text_.empty()) sink_(text_);
    text_.clear();
  }

  void describe(const Layout& layout) {
    int last = 0;
    for (std::size_t i = 0; i < layout.tracks.size(); ++i) {
      const Track& track = layout.tracks[i];
      if (track.process != last) describe_process(track.process);
      last = track.process;
      const Message thread{{field::thread_pid, static_cast<std::uint64_t>(track.process)},
                           {field::thread_tid, 1000 + i},
                           {field::thread_name, track.title}};
      send_descriptor(
          {{field::uuid, i + 1}, {field::parent_uuid, process_uuid(track.process)}, {field::thread, thread}});
    }
  }
  static std::uint64_t memory_uuid(int process, MemoryUse use) {
    return 2'000'000 + static_cast<std::uint64_t>(process) * all_memory_uses.size() + static_cast<std::uint64_t>(use);
  }
  // Describes the track of one use of a process's memory when it first occurs.
  void describe_memory(int process, MemoryUse use) {
    send_descriptor({{field::uuid, memory_uuid(process, use)},
                     {field::track_name, "memory, " + std::string(to_string(use))},
                     {field::parent_uuid, process_uuid(process)},
                     {field::counter, Message{{field::counter_unit, size_bytes}}}});
  }
  void count(const PlacedMemory& memory) {
    for (const MemoryUse use : all_memory_uses) {
      const auto bytes = static_cast<std::uint64_t>(memory.point->bytes[static_cast<std::size_t>(use)]);
      const auto [last, is_new] = memory_.try_emplace(memory_uuid(memory.process, use), bytes);
      if (is_new) describe_memory(memory.process, use);
      if (!is_new && last->second == bytes) continue;
      last->second = bytes;
      const Message about{
          {field::event_type, counter}, {field::event_track, last->first}, {field::counter_value, bytes}};
      send_event(memory.at_ns, about);
    }
  }

  void describe_process(int process) {
    const Message about{{field::process_pid, static_cast<std::uint64_t>(process)},
                        {field::process_name, process_title(trace_, process)}};
    send_descriptor({{field::uuid, process_uuid(process)}, {field::process, about}});
  }
  void send_descriptor(const Message& descriptor) {
    Message each{{field::sequence_id, 1}};
    if (std::exchange(is_first_, false)) each.add({field::flags, state_cleared});
    each.add({field::track_descriptor, descriptor});
    packet(each);
  }
  void send_event(std::uint64_t at_ns, const Message& about, const Message& interned = {}) {
    Message each{{field::timestamp, at_ns}, {field::sequence_id, 1}, {field::track_event, about}};
    if (!interned.text().empty()) each.add({field::interned_data, interned});
    each.add({field::flags, needs_state});
    packet(each);
  }

  // A text is sent once and has a number from then on.
  static std::uint64_t intern(std::map<std::string, std::uint64_t>& known, const std::string& text, int kind,
                              Message& interned) {
    const auto [place, is_new] = known.try_emplace(text, known.size() + 1);
    if (is_new) interned.add({kind, Message{{field::interned_iid, place->second}, {field::interned_text, text}}});
    return place->second;
  }

  void event(const Placed& placed, std::uint64_t type, std::uint64_t ns) {
    Message interned, about;
    if (type == slice_begin) {
      const std::string kind(to_string(placed.slice->kind));
      about.add({field::event_category_iid, intern(categories_, kind, field::interned_categories, interned)});
      about.add({field::event_type, type});
      about.add({field::event_name_iid,
                 intern(names_, placed.step->names[placed.slice->name], field::interned_names, interned)});
    } else {
      about.add({field::event_type, type});
    }
    about.add({field::event_track, static_cast<std::uint64_t>(placed.track)});
    send_event(ns, about, interned);
  }

  const StepTrace& trace_;
  const Sink& sink_;
  bool is_first_ = true;
  std::string text_;
  std::map<std::string, std::uint64_t> names_, categories_;
  std::map<std::uint64_t, std::uint64_t> memory_;  // bytes that were written last, by track
};

}  // namespace

void write_chrome_trace(const StepTrace& trace, const Sink& sink) {
  const Layout layout(trace);
  std::string text =
      "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceName\":" + quoted(trace.name) + ",\"traceEvents\":[";
  bool has_events = false;
  const auto add = [&](const std::string& event) {
    text += (has_events ? ",\n" : "\n") + event;
    has_events = true;
    if (text.size() < 1 << 20) return;
    sink(text);
    text.clear();
  };
  std::set<std::string> named;
  for (std::size_t i = 0; i < layout.tracks.size(); ++i) {
    const Track& track = layout.tracks[i];
    const std::string process = chrome_process(track.process, track.on_gpu);
    if (named.insert(process).second)
      add(R"({"ph":"M","name":"process_name","pid":)" + process + R"(,"tid":0,"args":{"name":)" +
          quoted(process_title(trace, track.process) + (track.on_gpu ? ", GPU" : "")) + "}}");
    add(R"({"ph":"M","name":"thread_name","pid":)" + process + R"(,"tid":)" + std::to_string(i + 1) +
        R"(,"args":{"name":)" + quoted(track.title) + "}}");
  }
  for (const PlacedWindow& window : layout.windows)
    add(fmt::format(R"({{"ph":"X","cat":"step_window","name":"ProfilerStep#{}","pid":{},"tid":{},"ts":{},"dur":{},)"
                    R"("args":{{"device":{}}}}})",
                    window.step->step, chrome_process(window.step->rank + 1, true),
                    layout.tracks.size() + static_cast<std::size_t>(window.step->rank) + 1,
                    microseconds(window.start_ns), microseconds(window.end_ns - window.start_ns), window.step->rank));
  // The numbers that join launches and kernels are a process's.
  std::map<std::pair<int, std::uint32_t>, std::size_t> correlations;
  for (const Placed& placed : layout.slices) {
    const std::string& name = placed.step->names[placed.slice->name];
    std::string correlation;
    if (placed.slice->correlation != 0)
      correlation = fmt::format(
          ",\"correlation\":{}",
          correlations.try_emplace({placed.process, placed.slice->correlation}, correlations.size() + 1).first->second);
    const bool on_gpu = placed.step->lanes[placed.row->lane].on_gpu;
    add(R"({"ph":"X","cat":")" + std::string(category_of(placed, name)) + R"(","name":)" + quoted(name) + R"(,"pid":)" +
        chrome_process(placed.process, on_gpu) + R"(,"tid":)" + std::to_string(placed.track) + R"(,"ts":)" +
        microseconds(placed.start_ns) + R"(,"dur":)" + microseconds(placed.end_ns - placed.start_ns) +
        R"(,"args":{"kind":")" + std::string(to_string(placed.slice->kind)) + "\"" +
        (on_gpu ? R"(,"device":)" + std::to_string(placed.process - 1) + R"(,"stream":)" + std::to_string(placed.stream)
                : "") +
        correlation + "}}");
  }
  for (const PlacedMemory& memory : layout.memory) {
    std::string uses;
    for (const MemoryUse use : all_memory_uses)
      uses += fmt::format("{}{}\":{}", uses.empty() ? "\"" : ",\"", to_string(use),
                          memory.point->bytes[static_cast<std::size_t>(use)]);
    add(R"({"ph":"C","name":"memory in bytes","pid":)" + chrome_process(memory.process, false) + R"(,"ts":)" +
        microseconds(memory.at_ns) + R"(,"args":{)" + uses + "}}");
  }
  sink(text + "\n]}\n");
}

void write_perfetto_trace(const StepTrace& trace, const Sink& sink) {
  PerfettoWriter(trace, sink).write();
}

}  // namespace stepladder
