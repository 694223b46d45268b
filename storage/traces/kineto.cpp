// Streaming reader of Chrome trace JSON: nlohmann's SAX parser over unpacked pieces, one event in memory at a time.
// Times are parsed from their text, since a double would lose nanoseconds. Events of unknown categories are skipped,
// malformed basic fields are errors.
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "storage/analysis/kernel_kind.h"
#include "storage/traces/operand_lists.h"
#include "storage/traces/trace_file.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr int deepest = 100;
constexpr std::size_t longest_value = 16 << 20;  // bytes of a text or number

// The bytes one by one, as nlohmann's parser takes them.
struct Source {
  explicit Source(TraceBytes& bytes) : stream(bytes) { refill(); }
  void refill() {
    piece = stream.next();
    place = 0;
  }
  bool at_end() const { return piece.empty(); }
  void advance() {
    ++read;
    if (++in_value > longest_value) throw TraceError("holds a value of more than 16 MiB");
    if (++place == piece.size()) refill();
  }

  TraceBytes& stream;
  std::string_view piece;
  std::size_t place = 0;
  std::int64_t read = 0;
  std::size_t in_value = 0;
};

class SourceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit SourceIterator(Source* source = nullptr) : source_(source) {}
  reference operator*() const { return source_->piece[source_->place]; }
  SourceIterator& operator++() {
    source_->advance();
    return *this;
  }
  bool operator==(const SourceIterator& other) const { return is_end() == other.is_end(); }
  bool operator!=(const SourceIterator& other) const { return !(*this == other); }

 private:
  bool is_end() const { return !source_ || source_->at_end(); }
  Source* source_;
};

// Microseconds as they are printed, to the nanosecond: a double of a clock's microseconds would lose some.
std::optional<std::int64_t> nanoseconds(const std::string& text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool is_negative = at != end && *at == '-';
  if (is_negative) ++at;
  std::int64_t whole = 0;
  const auto [behind, error] = std::from_chars(at, end, whole);
  if (error != std::errc() || whole > std::numeric_limits<std::int64_t>::max() / 2000) return std::nullopt;
  std::int64_t ns = whole * 1000;
  at = behind;
  if (at != end && *at == '.') {
    std::int64_t unit = 100;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, unit /= 10) ns += (*at - '0') * unit;
  }
  if (at != end) {  // an exponent
    const double us = std::strtod(text.c_str(), nullptr);
    if (!(std::fabs(us) < 1e15)) return std::nullopt;
    return std::llround(us * 1000);
  }
  return is_negative ? -ns : ns;
}

struct Event {
  std::string name, phase, category, process, thread;
  std::optional<std::int64_t> start_ns, duration_ns;
  std::int64_t bytes = 0, total_bytes = 0, address = 0, device_type = 0, device_id = -1;  // of memory
  std::string label;                                                                      // of a process
  std::int64_t device = -1, stream = -1, correlation = 0, sequence = -1;
};

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// The kind of a slice that counts; nullopt: it doesn't. Traces of older versions capitalise their categories.
std::optional<SliceKind> kind_of(const Event& event) {
  const std::string_view category = event.category;
  if (is_one_of(category, {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events"}))
    return SliceKind::kernel;
  if (is_one_of(category, {"gpu_user_annotation"}))
    return step_number(event.name) >= 0 ? std::optional(SliceKind::device_step) : std::nullopt;
  if (category == "step_window") return SliceKind::device_window;  // Stepladder's export
  if (is_one_of(category, {"cuda_runtime", "cuda_driver", "Runtime", "xpu_runtime"}))
    return event.correlation > 0 ? std::optional(SliceKind::launch) : std::nullopt;
  if (category == "python_function")
    return event.name.starts_with("nn.Module: ") ? std::optional(SliceKind::module) : std::nullopt;
  if (is_one_of(category, {"cpu_op", "Operator", "user_annotation", ""}))
    return step_number(event.name) >= 0 ? SliceKind::step : SliceKind::operation;
  return std::nullopt;
}

// Receives the parser's events and adds a slice at each end of an event of the trace.
class KinetoReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  KinetoReader(Source& source, Trace& trace) : source_(source), trace_(trace) {}

  bool null() override { return value_read(); }
  bool boolean(bool) override { return value_read(); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto most = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return integer(static_cast<std::int64_t>(std::min(value, most)));
  }
  bool number_float(number_float_t, const string_t& text) override {
    require(key_ != "name" && key_ != "ph", "a number");
    if (in_event() && key_ == "ts") event_.start_ns = time_of(text);
    if (in_event() && key_ == "dur") event_.duration_ns = time_of(text);
    return value_read();
  }
  // A name or time of another type, as a value of type `type`, is nothing that can be skipped in silence.
  void require(bool is_right, const char* type) const {
    if (in_event() && !is_right)
      throw TraceError("has an event whose " + key_ + " is " + type + ", event " + grouped(events_ + 1));
  }
  bool string(string_t& text) override {
    require(key_ != "ts" && key_ != "dur", "a text");
    if (in_event()) {
      if (key_ == "name") event_.name = text;
      if (key_ == "ph") event_.phase = text;
      if (key_ == "cat") event_.category = text;
      if (key_ == "pid") event_.process = text;
      if (key_ == "tid") event_.thread = text;
    } else if (in_arguments() && argument_ == "name") {
      event_.label = text;
    } else if (in_device() && argument_ == "name" && trace_.hardware.empty()) {
      trace_.hardware = text;
    } else if (depth_in("Input type") == 1) {
      operands_.type(text);
    } else if (depth_in("Concrete Inputs") == 1) {
      operands_.value(text);
    }
    return value_read();
  }
  bool binary(binary_t&) override { return value_read(); }

  bool start_object(std::size_t) override {
    require(!is_basic(), "an object");
    opened();
    if (depth_ == events_depth_ + 1) {
      event_ = {};
      operands_.clear();
    }
    return value_read();
  }
  bool end_object() override {
    if (depth_ == events_depth_ + 1 && events_depth_ > 0) end_event();
    --depth_;
    return value_read();
  }
  bool start_array(std::size_t) override {
    require(!is_basic(), "a list");
    const bool holds_events = depth_ == 0 || (depth_ == 1 && top_key_ == "traceEvents");
    opened();
    if (holds_events && events_depth_ == 0) {
      events_depth_ = depth_;
      has_events_ = true;
    }
    if (const int depth = depth_in("Input Dims")) operands_.list_begins(depth);
    return value_read();
  }
  bool end_array() override {
    if (const int depth = depth_in("Input Dims")) operands_.list_ends(depth);
    if (depth_ == events_depth_) events_depth_ = 0;
    --depth_;
    return value_read();
  }
  bool key(string_t& text) override {
    if (depth_ == 1) top_key_ = text;
    if (events_depth_ > 0 && depth_ <= events_depth_ + 2) {
      (depth_ == events_depth_ + 1 ? key_ : argument_) = text;
    } else if (depth_ == 2 || in_device()) {
      argument_ = text;
    }
    return value_read();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    const std::string place = grouped(source_.read);
    if (has_value_ && depth_ == 0) throw TraceError("goes on after its JSON value has ended, at byte " + place);
    throw TraceError(source_.at_end() ? "is cut off after " + place + " bytes"
                                      : "isn't JSON: byte " + place + " is not what a value goes on with");
  }

  bool has_events() const { return has_events_; }
  // Throws TraceError if the device's work is in a form that isn't read, and notes that it is missing.
  void check_device() {
    if (kernels_ > 0) return;
    if (!xla_device_.empty())
      throw TraceError("was written by XLA's profiler (JAX): its events of " + xla_device_ +
                       " have no category, no launch and no stream, so kernels aren't known from the host's calls; "
                       "only traces of PyTorch's profiler and of Nsight Systems are read");
    std::string unread;
    for (const auto& [category, count] : unread_)
      unread += (unread.empty() ? "" : ", ") + category + " (" + plural(count, "event") + ")";
    if (!unread.empty())
      throw TraceError("has no kernels of PyTorch's profiler: the device's work is in events of another category, " +
                       unread + ", whose launches and streams aren't known");
    if (launches_ > 0)
      trace_.notes.push_back(fmt::format(
          "The trace holds {} of a GPU but none of its kernels, so this is the CPU's time alone: the profiler didn't "
          "record the device's activity.",
          plural(launches_, "launch", "launches")));
  }
  std::string precision() const { return products_.precision(); }
  std::int64_t base_ns() const { return base_ns_; }

 private:
  bool value_read() {
    source_.in_value = 0;
    return true;
  }
  void opened() {
    has_value_ = true;
    if (++depth_ > deepest) throw TraceError(fmt::format("nests its values more than {} deep", deepest));
  }
  bool is_basic() const { return key_ == "name" || key_ == "ph" || key_ == "ts" || key_ == "dur"; }
  bool in_event() const { return events_depth_ > 0 && depth_ == events_depth_ + 1; }
  bool in_device() const { return depth_ == 3 && top_key_ == "deviceProperties"; }
  bool in_arguments() const { return events_depth_ > 0 && depth_ == events_depth_ + 2 && key_ == "args"; }
  // The number of lists that are open within this argument; 0: none, or another argument.
  int depth_in(std::string_view argument) const {
    const bool is_in = events_depth_ > 0 && depth_ > events_depth_ + 2 && key_ == "args" && argument_ == argument;
    return is_in ? depth_ - events_depth_ - 2 : 0;
  }

  std::int64_t time_of(const std::string& text) const {
    const std::optional<std::int64_t> ns = nanoseconds(text);
    if (!ns)
      throw TraceError("has a slice at an impossible time, '" + event_.name + "', event " + grouped(events_ + 1));
    return *ns;
  }

  bool integer(std::int64_t value) {
    require(key_ != "name" && key_ != "ph", "a number");
    if (in_event()) {
      if (key_ == "ts") event_.start_ns = time_of(std::to_string(value));
      if (key_ == "dur") event_.duration_ns = time_of(std::to_string(value));
      if (key_ == "pid") event_.process = std::to_string(value);
      if (key_ == "tid") event_.thread = std::to_string(value);
    } else if (in_arguments()) {
      if (argument_ == "device") event_.device = value;
      if (argument_ == "stream") event_.stream = value;
      if (argument_ == "correlation") event_.correlation = value;
      if (argument_ == "Sequence number") event_.sequence = value;
      if (argument_ == "Bytes") event_.bytes = value;
      if (argument_ == "Total Allocated") event_.total_bytes = value;
      if (argument_ == "Addr") event_.address = value;
      if (argument_ == "Device Type") event_.device_type = value;
      if (argument_ == "Device Id") event_.device_id = value;
    } else if (depth_ == 1 && top_key_ == "baseTimeNanoseconds") {
      base_ns_ = value;
    } else if (depth_in("Input Dims") > 1) {
      operands_.size(value);
    } else if (depth_ == 2 && top_key_ == "distributedInfo" && argument_ == "rank" && value >= 0 && value < 1'000'000) {
      trace_.rank = static_cast<int>(value);
    }
    return value_read();
  }

  void finish_memory() {
    trace_.add(MemoryChange{.at_ns = *event_.start_ns,
                            .bytes = event_.bytes,
                            .total_bytes = event_.total_bytes,
                            .address = static_cast<std::uint64_t>(event_.address),
                            .device = event_.device_type == 1 ? static_cast<int>(event_.device_id) : -1});
  }

  // Errors of an event name its number, from 1.
  void end_event() {
    ++events_;
    try {
      finish_event();
    } catch (const TraceError& error) {
      throw TraceError(std::string(error.what()) + ", event " + grouped(events_));
    }
  }

  // Work of a device in a category of another profiler: "gpu_op" of Intel's.
  void count_unread() {
    constexpr std::size_t most = 20;
    const std::string words = words_of_name(event_.category);
    for (const std::string_view word : {" gpu ", " xpu ", " hpu ", " device ", " kernel ", " npu "}) {
      const bool is_known = event_.category == "gpu_user_annotation" || event_.category == "xpu_runtime";
      if (is_known || words.find(word) == std::string::npos) continue;
      if (unread_.size() < most || unread_.contains(event_.category)) ++unread_[event_.category];
      return;
    }
  }

  void finish_event() {
    if (event_.phase == "M" && event_.name == "process_name" && event_.label.starts_with("/device:"))
      xla_device_ = event_.label.substr(0, 100);
    if (event_.phase == "i" && event_.name == "[memory]" && event_.start_ns) return finish_memory();
    if (event_.phase != "X" || !event_.start_ns || !event_.duration_ns) return;
    const std::optional<SliceKind> kind = kind_of(event_);
    if (!kind) return count_unread();
    launches_ += *kind == SliceKind::launch;
    kernels_ += *kind == SliceKind::kernel;
    const bool on_device =
        *kind == SliceKind::kernel || *kind == SliceKind::device_step || *kind == SliceKind::device_window;
    if (on_device && event_.device >= 0) event_.process = std::to_string(event_.device);
    if (on_device && event_.stream >= 0) event_.thread = std::to_string(event_.stream);
    TraceSlice slice{.start_ns = *event_.start_ns, .duration_ns = *event_.duration_ns, .kind = *kind};
    slice.lane = trace_.lane({(on_device ? "device " : "") + event_.process, event_.thread});
    slice.name = trace_.name(event_.name);
    if (*kind == SliceKind::operation) {
      slice.operands = trace_.operands(event_.name, operands_.operands());
      if (trace_.operands(slice.operands).shapes != 0) products_.add(operands_, trace_.operands(slice.operands).work);
    } else if (*kind == SliceKind::kernel) {
      products_.add_kernel(event_.name);
    }
    const std::int64_t number = step_number(event_.name);
    if (*kind == SliceKind::operation) event_.correlation = event_.sequence + 1;
    slice.correlation = static_cast<std::uint32_t>(number >= 0 ? number : event_.correlation);
    trace_.add(slice);
  }

  Source& source_;
  Trace& trace_;
  int depth_ = 0;
  int events_depth_ = 0;  // of the array of events; 0: outside it
  bool has_events_ = false;
  bool has_value_ = false;   // the file's value has begun
  std::int64_t events_ = 0;  // that have ended
  std::string top_key_, key_, argument_;
  Event event_;
  std::int64_t kernels_ = 0, launches_ = 0;
  std::map<std::string, std::int64_t> unread_;  // events of a device, by category
  std::string xla_device_;
  std::int64_t base_ns_ = 0;  // the unix time of the time 0; 0 too if times are unix times themselves
  OperandLists operands_;     // of the event
  ProductPrecision products_;
};

}  // namespace

Trace read_kineto(TraceBytes& bytes) {
  Trace trace;
  trace.format = "kineto";
  Source source(bytes);
  KinetoReader reader(source, trace);
  nlohmann::json::sax_parse(SourceIterator(&source), SourceIterator(), &reader);
  if (!reader.has_events()) throw TraceError("is JSON, but holds no events of a trace (traceEvents)");
  reader.check_device();
  if (trace.slices().empty()) throw TraceError("holds no operator and no kernel");
  trace.precision = reader.precision();
  trace.sort();
  trace.find_origin(reader.base_ns());
  return trace;
}

}  // namespace stepladder
