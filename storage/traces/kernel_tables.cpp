#include "storage/traces/kernel_tables.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "storage/wording.h"

namespace stepladder {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_table_bytes = 64 << 20;
constexpr int deepest_tree = 1'000;       // a scope of proton is two deep: the list it is in, and itself
constexpr int most_values = 1'000'000;    // of a tree; a frame has about ten
constexpr std::int64_t begin_ns = 1'000;  // 0 is a launch that isn't known
constexpr double longest_ns = 1e18;       // of all calls of a kernel
constexpr std::string_view llmc_title = "Kernel calls:", llmc_summary = "Kernel type summaries:";

std::string all_of(TraceBytes& bytes, std::string_view head) {
  std::string text(head);
  for (std::string_view piece = bytes.next(); !piece.empty(); piece = bytes.next()) {
    if (text.size() + piece.size() > most_table_bytes) throw TraceError("is a table of kernels of more than 64 MiB");
    text += piece;
  }
  return text;
}

// One device's kernels, end to end, and the ranges around them. Adds all in Trace::sort's order, but for ranges that
// begin and end together, whose order it keeps: the outer first.
class Layout {
 public:
  // `launches` is how many there are so far. If the devices aren't laid out beside each other, steps are marked on each
  // of them.
  Layout(Trace& trace, const std::string& device, std::uint32_t& launches, bool is_only_device)
      : trace_(trace),
        stream_(trace.lane({"device " + device, "0"})),
        thread_(trace.lane({"threads", device})),
        is_only_device_(is_only_device),
        launches_(launches) {}

  // Begins a step, or a range of this name.
  void open(std::string_view name) {
    const std::int64_t step = range_step(name);
    opened_.push_back(ranges_.size());
    ranges_.push_back({.start_ns = now_ns_,
                       .name = trace_.name(name),
                       .correlation = static_cast<std::uint32_t>(std::max<std::int64_t>(step, 0)),
                       .lane = step >= 0 && !is_only_device_ ? stream_ : thread_,
                       .kind = step < 0          ? SliceKind::operation
                               : is_only_device_ ? SliceKind::step
                                                 : SliceKind::device_step});
  }
  // Ends what began last; one without a kernel never was.
  void close() {
    TraceSlice& range = ranges_[opened_.back()];
    range.duration_ns = now_ns_ - range.start_ns;
    if (range.duration_ns == 0) ranges_.resize(opened_.back());
    opened_.pop_back();
  }

  // As many calls as were counted, equally long.
  void kernel(std::string_view name, double total_ns, std::uint64_t calls) {
    if (!(total_ns >= 0 && total_ns < longest_ns))
      throw TraceError("has a kernel with an impossible time, '" + std::string(name) + "'");
    if (std::llround(total_ns) == 0) return;
    const std::uint32_t number = trace_.name(name);
    ranges_.push_back({.start_ns = now_ns_, .correlation = ++launches_, .lane = thread_, .kind = SliceKind::launch});
    const std::int64_t begin = now_ns_;
    for (std::uint64_t i = 1; i <= calls; ++i) {
      const std::int64_t end = begin + std::llround(total_ns * (static_cast<double>(i) / static_cast<double>(calls)));
      trace_.add({.start_ns = now_ns_,
                  .duration_ns = end - now_ns_,
                  .name = number,
                  .correlation = launches_,
                  .lane = stream_,
                  .kind = SliceKind::kernel});
      now_ns_ = end;
    }
  }

  void finish() {
    for (const TraceSlice& each : ranges_) trace_.add(each);
  }

 private:
  Trace& trace_;
  std::uint16_t stream_, thread_;
  bool is_only_device_;
  std::int64_t now_ns_ = begin_ns;
  std::uint32_t& launches_;
  std::vector<TraceSlice> ranges_;   // and launches
  std::vector<std::size_t> opened_;  // of ranges_
};

// --- proton ----------------------------------------------------------------------------------------------------------

// Counts what a tree would hold, before it is made.
class TreeSize : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return opened(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return closed(); }
  bool start_array(std::size_t) override { return opened(); }
  bool end_array() override { return closed(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;  // told when the tree is made
  }

 private:
  bool value() {
    if (++values_ > most_values)
      throw TraceError("holds more than " + wording::grouped(std::int64_t{most_values}) + " values");
    return true;
  }
  bool opened() {
    if (++depth_ > deepest_tree)
      throw TraceError("nests its values more than " + std::to_string(deepest_tree) + " deep");
    return value();
  }
  bool closed() {
    --depth_;
    return true;
  }
  int depth_ = 0, values_ = 0;
};

Json parse(const std::string& text) {
  TreeSize size;
  Json::sax_parse(text, &size);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw TraceError(error.byte > text.size()
                         ? "is cut off after " + wording::grouped(static_cast<std::int64_t>(text.size())) + " bytes"
                         : "isn't JSON: byte " + wording::grouped(static_cast<std::int64_t>(error.byte)) +
                               " is not what a value goes on with");
  } catch (const Json::out_of_range&) {
    throw TraceError("has a number that is too large");
  }
}

// Older versions capitalise their metrics. Null: the frame has none of that name.
const Json* metric(const Json& node, std::string_view name) {
  const auto metrics = node.find("metrics");
  if (metrics == node.end() || !metrics->is_object()) return nullptr;
  for (const auto& [key, value] : metrics->items()) {
    if (std::equal(key.begin(), key.end(), name.begin(), name.end(), [](char a, char b) {
          return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
        }))
      return &value;
  }
  return nullptr;
}

std::string frame_name(const Json& node) {
  const auto frame = node.find("frame");
  if (frame == node.end() || !frame->is_object() || !frame->contains("name") || !(*frame)["name"].is_string())
    throw TraceError("is no profile of Triton's proton: a frame has no name");
  return (*frame)["name"].get<std::string>();
}

// Nothing if this frame is a scope that only has others in it.
struct ProtonKernel {
  double total_ns = 0;
  std::uint64_t calls = 1;
  std::string device;
};

std::optional<ProtonKernel> kernel_of(const Json& node) {
  const Json* const time = metric(node, "time (ns)");
  const Json* const count = metric(node, "count");
  const Json* device = metric(node, "device_id");
  if (!device) device = metric(node, "deviceid");
  if (!time || !device || *time == 0) return std::nullopt;
  if (!time->is_number() || (count && (!count->is_number() || !(count->get<double>() >= 1) ||
                                       count->get<double>() > static_cast<double>(Trace::most_slices))))
    throw TraceError("has a kernel with an impossible time or count, '" + frame_name(node) + "'");
  return ProtonKernel{.total_ns = time->get<double>(),
                      .calls = count ? count->get<std::uint64_t>() : 1,
                      .device = device->is_string() ? device->get<std::string>() : device->dump()};
}

// The frames in a scope, in the file's order.
const Json& children_of(const Json& node) {
  static const Json none = Json::array();
  const auto children = node.find("children");
  if (children == node.end()) return none;
  if (!children->is_array() ||
      std::any_of(children->begin(), children->end(), [](const Json& child) { return !child.is_object(); }))
    throw TraceError("is no profile of Triton's proton: a frame's children are no list of frames");
  return *children;
}

void add_devices(const Json& node, std::set<std::string>& devices) {
  if (const std::optional<ProtonKernel> kernel = kernel_of(node)) devices.insert(kernel->device);
  for (const Json& child : children_of(node)) {
    frame_name(child);  // that it has one
    add_devices(child, devices);
  }
}

void lay_out(const Json& node, const std::string& device, Layout& layout) {
  const std::string name = frame_name(node);
  const std::optional<ProtonKernel> kernel = kernel_of(node);
  if (kernel && kernel->device == device) layout.kernel(name, kernel->total_ns, kernel->calls);
  layout.open(name);
  for (const Json& child : children_of(node)) lay_out(child, device, layout);
  layout.close();
}

// --- llm.c -----------------------------------------------------------------------------------------------------------

// "03 fwd✗12  layernorm_forward_kernel6  1.20  ...": the milliseconds of all its calls.
struct LlmcRow {
  std::string pass, kernel;  // enc, fwd, cls, bwd, opt, init
  int calls = 0;             // 0: before the first step
  double total_ms = 0;
};

std::optional<LlmcRow> llmc_row(const std::string& line) {
  std::istringstream words(line);
  std::string id, pass, kernel, time;
  if (!(words >> id >> pass >> kernel >> time)) return std::nullopt;
  const std::size_t letters = std::min(pass.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), pass.size());
  const std::size_t digits = std::min(pass.find_first_of("0123456789"), pass.size());
  LlmcRow row{.pass = pass.substr(0, letters), .kernel = kernel};
  const auto [calls_end, calls_error] = std::from_chars(pass.data() + digits, pass.data() + pass.size(), row.calls);
  const auto [time_end, time_error] = std::from_chars(time.data(), time.data() + time.size(), row.total_ms);
  const bool is_row = id.find_first_not_of("0123456789") == std::string::npos && !row.pass.empty() &&
                      calls_error == std::errc() && calls_end == pass.data() + pass.size() && row.calls >= 0 &&
                      row.calls <= 1'000 && time_error == std::errc() && time_end == time.data() + time.size();
  return is_row ? std::optional(row) : std::nullopt;
}

bool is_dotted(const std::string& line) {
  return line.starts_with("...") && line.find_first_not_of(".\r") == std::string::npos;
}

// The rows between the two dotted lines, which the total follows.
std::vector<LlmcRow> llmc_rows(const std::string& text) {
  std::istringstream lines(text);
  std::vector<LlmcRow> rows;
  std::string line;
  int number = 0, dotted = 0;
  bool has_title = false;
  while (dotted < 2) {
    if (!std::getline(lines, line) || lines.eof())
      throw TraceError("is cut off: llm.c's table of kernels has no total");
    ++number;
    has_title = has_title || line.starts_with(llmc_title);
    if (!has_title) continue;
    if (is_dotted(line)) {
      ++dotted;
    } else if (dotted == 1) {
      const std::optional<LlmcRow> row = llmc_row(line);
      if (!row) throw TraceError("is no table of llm.c: line " + std::to_string(number) + " is no row of a kernel");
      rows.push_back(*row);
    }
  }
  double sum = 0, total = -1;
  for (const LlmcRow& row : rows) sum += row.calls > 0 ? row.total_ms : 0;
  std::string word;
  lines >> word >> total;
  // Each row is rounded to 0.01 ms.
  if (word != "Total" || !(std::fabs(sum - total) <= 0.006 * static_cast<double>(rows.size() + 1)))
    throw TraceError("is damaged: the rows of llm.c's table don't add up to its total");
  return rows;
}

// What is around a row. The classifier's kernels before and with the fused one are the forward pass and the loss.
struct LlmcPlace {
  std::string part, range;
  int layers = 1;
  bool operator==(const LlmcPlace&) const = default;
};

std::vector<LlmcPlace> llmc_places(const std::vector<LlmcRow>& rows) {
  std::vector<LlmcPlace> places;
  std::string part = "forward";
  for (const LlmcRow& row : rows) {
    if (row.pass == "enc") {
      places.push_back({part, "embedding"});
    } else if (row.pass == "cls") {
      const bool is_loss = row.kernel.find("fused_classifier") != std::string::npos;
      places.push_back({part, is_loss ? "loss" : "head"});
      if (is_loss) part = "backward";
    } else if (row.pass == "opt") {
      places.push_back({"optimizer", "AdamW"});
    } else {
      places.push_back({row.pass == "bwd" ? "backward" : part, "block", row.calls});
    }
  }
  return places;
}

// The rows of one pass's blocks, each as often as there are layers; the backward pass begins with the last.
void lay_out_layers(const std::vector<LlmcRow>& rows, std::size_t from, std::size_t to, const LlmcPlace& place,
                    Layout& layout) {
  for (int i = 0; i < place.layers; ++i) {
    layout.open("block " + std::to_string(place.part == "backward" ? place.layers - 1 - i : i));
    for (std::size_t row = from; row < to; ++row)
      layout.kernel(rows[row].kernel, rows[row].total_ms * 1e6 / rows[row].calls, 1);
    layout.close();
  }
}

}  // namespace

bool is_proton(std::string_view head) {
  std::string begin;  // without white space
  for (const char c : head.substr(0, 1'000)) {
    if (!std::isspace(static_cast<unsigned char>(c))) begin += c;
  }
  return begin.starts_with(R"([{"children":)") || begin.starts_with(R"([{"frame":)") ||
         begin.starts_with(R"([{"metrics":)");
}

bool is_llmc_table(std::string_view head) {
  return head.find(llmc_title) != std::string_view::npos &&
         (head.find("id pass") != std::string_view::npos || head.find(llmc_summary) != std::string_view::npos);
}

Trace read_proton(TraceBytes& bytes, std::string_view head) {
  const Json file = parse(all_of(bytes, head));
  const Json& root = file.at(0);
  std::set<std::string> devices;
  add_devices(root, devices);
  Trace trace;
  trace.format = "proton";
  std::uint32_t launches = 0;
  for (const std::string& device : devices) {
    Layout layout(trace, device, launches, devices.size() == 1);
    for (const Json& child : children_of(root)) lay_out(child, device, layout);
    layout.finish();
  }
  if (trace.slices().empty()) throw TraceError("is a profile of Triton's proton, but no kernel in it has a time");
  return trace;
}

Trace read_llmc_table(TraceBytes& bytes, std::string_view head) {
  std::vector<LlmcRow> rows = llmc_rows(all_of(bytes, head));
  std::erase_if(rows, [](const LlmcRow& row) { return row.calls == 0; });
  const std::vector<LlmcPlace> places = llmc_places(rows);
  Trace trace;
  trace.format = "llm.c";
  std::uint32_t launches = 0;
  Layout layout(trace, "0", launches, true);
  layout.open("ProfilerStep#0");
  for (std::size_t from = 0, to = 0; from < rows.size(); from = to) {
    const LlmcPlace& place = places[from];
    while (to < rows.size() && places[to] == place) ++to;
    layout.open(place.part);
    if (place.layers > 1) {
      lay_out_layers(rows, from, to, place, layout);
    } else {
      layout.open(place.range);
      for (std::size_t row = from; row < to; ++row) layout.kernel(rows[row].kernel, rows[row].total_ms * 1e6, 1);
      layout.close();
    }
    layout.close();
  }
  layout.close();
  layout.finish();
  if (trace.slices().empty()) throw TraceError("is a table of llm.c, but no kernel in it has a time");
  return trace;
}

}  // namespace stepladder
