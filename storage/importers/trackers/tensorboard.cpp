// TensorBoard's event files: TFRecord frames (length, its masked CRC32C, payload, its masked CRC32C), each an Event
// (tensorboard/compat/proto/event.proto, summary.proto, tensor.proto). One run may be several files in one folder.
#include "storage/importers/trackers/tensorboard.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "storage/checksum.h"
#include "storage/importers/trackers/byte_stream.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/growing_store.h"
#include "storage/importers/trackers/wire_reader.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t header_size = 12;  // length and its checksum
constexpr std::size_t footer_size = 4;
constexpr std::uint64_t largest_event = 64 << 20;  // scalars are tiny; a larger event is an image, a graph or an attack
constexpr std::size_t longest_text = 65536;
constexpr int deepest_folder = 16;

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint64_t u64_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool length_holds(std::string_view header) {
  return u32_at(header, 8) == masked(crc32c(header.substr(0, 8)));
}

double half(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 0x1f;
  const double mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

double bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

enum DataType {
  dt_float = 1,
  dt_double = 2,
  dt_int32 = 3,
  dt_string = 7,
  dt_int64 = 9,
  dt_bfloat16 = 14,
  dt_half = 19
};

template <class T>
std::optional<T> raw(std::string_view bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct Tensor {
  std::int64_t type = 0;
  bool scalar = true;        // one element
  std::string_view content;  // its bytes, if stored as tensor_content
  std::optional<double> value;
  std::string_view text;
  int values = 0;
};

bool holds_one_element(std::string_view shape) {
  WireReader dimensions(shape);
  while (dimensions.next()) {
    if (dimensions.number() != 2) continue;
    std::int64_t size = 0;
    WireReader dimension(dimensions.bytes());
    while (dimension.next())
      if (dimension.number() == 1) size = dimension.integer();
    if (size != 1) return false;
  }
  return true;
}

// float_val and the like: one value, or several packed into one field; a scalar has only the first.
void read_value_field(const WireReader& field, Tensor& tensor) {
  ++tensor.values;
  const std::string_view packed = field.bytes();
  const auto first_varint = [&] {
    if (packed.empty()) return static_cast<std::uint64_t>(field.integer());
    return WireReader(packed).varint();
  };
  switch (field.number()) {
    case 5:
      if (field.is_real32())
        tensor.value = field.real32();
      else if (const auto value = raw<float>(packed.substr(0, 4)))
        tensor.value = *value;
      break;
    case 6:
      if (packed.empty())
        tensor.value = field.real();
      else if (const auto value = raw<double>(packed.substr(0, 8)))
        tensor.value = *value;
      break;
    case 7:
    case 10:
      tensor.value = static_cast<double>(static_cast<std::int64_t>(first_varint()));
      break;
    case 13: {
      const auto bits = static_cast<std::uint16_t>(first_varint());
      tensor.value = tensor.type == dt_bfloat16 ? bfloat16(bits) : half(bits);
      break;
    }
    default:
      break;
  }
}

std::optional<double> value_of_content(std::int64_t type, std::string_view content) {
  switch (type) {
    case dt_float:
      return raw<float>(content);
    case dt_double:
      return raw<double>(content);
    case dt_int32:
      return raw<std::int32_t>(content);
    case dt_int64:
      if (const auto value = raw<std::int64_t>(content)) return static_cast<double>(*value);
      return std::nullopt;
    case dt_half:
      if (const auto bits = raw<std::uint16_t>(content)) return half(*bits);
      return std::nullopt;
    case dt_bfloat16:
      if (const auto bits = raw<std::uint16_t>(content)) return bfloat16(*bits);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Tensor read_tensor(std::string_view message) {
  Tensor tensor;
  WireReader field(message);
  while (field.next()) {
    switch (field.number()) {
      case 1:
        tensor.type = field.integer();
        break;
      case 2:
        tensor.scalar = holds_one_element(field.bytes());
        break;
      case 4:
        tensor.content = field.bytes();
        break;
      case 8:
        if (tensor.text.empty()) tensor.text = field.bytes();
        break;
      default:
        read_value_field(field, tensor);
    }
  }
  if (!tensor.content.empty()) tensor.value = value_of_content(tensor.type, tensor.content);
  // Writers leave out a value that is zero.
  if (tensor.values == 0 && tensor.content.empty() && tensor.type != dt_string) tensor.value = 0;
  if (!tensor.scalar || field.malformed()) tensor.value.reset();
  return tensor;
}

// The kinds of google.protobuf.Value that hyper-parameters use.
Json value_message(std::string_view message) {
  Json value;
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 2) value = field.real();
    if (field.number() == 3) value = std::string(field.bytes());
    if (field.number() == 4) value = field.integer() != 0;
  }
  if (value.is_number_float() && !std::isfinite(value.get<double>())) value = std::to_string(value.get<double>());
  return value;
}

class EventReader {
 public:
  explicit EventReader(ForeignRun& run) : run_(run) {}

  // Reads one file to its end. Throws ImportError if it doesn't begin with a record.
  void read(ImportInput& input) {
    ByteStream stream(input);
    const std::string name = input.path().filename().string();
    std::string_view event;
    while (true) {
      const std::uint64_t begins = stream.offset();
      switch (next_frame(stream, event)) {
        case Frame::event:
          read_event(event);
          break;
        case Frame::bad:
          ++bad_checksums_;
          break;
        case Frame::too_large:
          ++too_large_;
          break;
        case Frame::end:
          return;
        case Frame::cut_off:
          if (begins == 0 && stream.offset() < header_size)
            throw ImportError("is not an event file: it is shorter than one record");
          return note(name, "ends in the middle of a record; the rest was read");
        case Frame::lost:
          if (begins == 0) throw ImportError("is not an event file: its first record has a wrong checksum");
          return note(name, "is damaged at byte " + std::to_string(begins) + "; the rest could not be read");
      }
    }
  }

  struct Progress {
    std::uint64_t end = 0;  // every byte before it was taken
    bool more = false;
    bool is_stuck = false;
    bool restarts = false;
  };

  // Reads whole records from `begin` on, about `most` bytes. A restart of the program is only ever the first of them.
  Progress read_some(ImportInput& input, std::uint64_t begin, std::uint64_t most, bool impatient) {
    ByteStream stream(input, begin);
    Progress progress{.end = begin};
    std::string_view event;
    for (bool is_first = true; progress.end - begin < most; is_first = false) {
      const Frame frame = next_frame(stream, event);
      if (frame == Frame::end || frame == Frame::cut_off) return progress;
      progress.is_stuck = frame == Frame::lost || (frame == Frame::bad && !impatient);
      if (progress.is_stuck) return progress;
      if (frame == Frame::event && starts_session(event)) {
        if (!is_first) break;
        progress.restarts = true;
      }
      if (frame == Frame::event) read_event(event);
      progress.end = stream.offset();
    }
    progress.more = true;
    return progress;
  }

  void finish() {
    if (bad_checksums_ > 0)
      run_.notes.push_back("left out " + times(bad_checksums_, "record", "records") + " with a wrong checksum");
    if (malformed_ > 0) run_.notes.push_back("left out " + times(malformed_, "malformed event", "malformed events"));
    if (too_large_ > 0)
      run_.notes.push_back("left out " + times(too_large_, "record", "records") + " larger than 64 MiB");
    if (not_scalar_ > 0)
      run_.notes.push_back("left out " + times(not_scalar_, "summary", "summaries") +
                           " without a single number (histogram, image, text)");
  }

 private:
  enum class Frame { event, bad, too_large, end, cut_off, lost };  // lost: no later record can be found

  // `event` is valid until the next call.
  static Frame next_frame(ByteStream& stream, std::string_view& event) {
    const std::string_view header = stream.take(header_size);
    if (header.empty()) return Frame::end;
    if (header.size() < header_size) return Frame::cut_off;
    if (!length_holds(header)) return Frame::lost;
    const std::uint64_t length = u64_at(header, 0);
    if (length > largest_event)
      return stream.skip(length) && stream.skip(footer_size) ? Frame::too_large : Frame::cut_off;
    const std::size_t size = static_cast<std::size_t>(length) + footer_size;
    const std::string_view payload = stream.take(size);
    if (payload.size() < size) return Frame::cut_off;
    event = payload.substr(0, size - footer_size);
    return u32_at(payload, size - footer_size) == masked(crc32c(event)) ? Frame::event : Frame::bad;
  }

  // SessionLog START: the program was restarted at this event's step.
  static bool starts_session(std::string_view message) {
    bool starts = false;
    WireReader field(message);
    while (field.next()) {
      if (field.number() != 7) continue;
      WireReader session(field.bytes());
      while (session.next()) starts = starts || (session.number() == 1 && session.integer() == 1);
    }
    return starts && !field.malformed();
  }

  void note(const std::string& name, const std::string& text) {
    run_.notes.push_back((name.empty() ? "the file " : name + " ") + text);
  }

  void read_event(std::string_view message) {
    double at = missing;
    std::int64_t step = 0;
    std::vector<std::string_view> summaries;
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 1) at = field.real();
      if (field.number() == 2) step = field.integer();
      if (field.number() == 5) summaries.push_back(field.bytes());
    }
    if (field.malformed()) {
      ++malformed_;
      return;
    }
    for (const std::string_view summary : summaries) {
      WireReader values(summary);
      while (values.next())
        if (values.number() == 1) read_summary_value(values.bytes(), step, at);
      if (values.malformed()) ++malformed_;
    }
  }

  void read_summary_value(std::string_view message, std::int64_t step, double at) {
    std::string_view tag;
    std::string_view metadata;
    std::string_view tensor_message;
    std::optional<double> value;
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 1) tag = field.bytes();
      if (field.number() == 2) value = field.real32();
      if (field.number() == 8) tensor_message = field.bytes();
      if (field.number() == 9) metadata = field.bytes();
    }
    if (field.malformed()) {
      ++malformed_;
      return;
    }
    if (!metadata.empty() && read_plugin(metadata)) return;
    Tensor tensor;
    if (!tensor_message.empty()) {
      tensor = read_tensor(tensor_message);
      value = tensor.value;
    }
    if (value) {
      run_.metrics.add(tag, step, *value, at);
    } else if (tensor.type == dt_string && tensor.text.size() <= longest_text && !tensor.text.empty()) {
      read_text(tag, tensor.text);
    } else {
      ++not_scalar_;
    }
  }

  // Programs put their configuration there as text: "args/text_summary" (Hugging Face), add_text("config", ...).
  void read_text(std::string_view tag, std::string_view text) {
    if (tag.ends_with("/text_summary")) tag.remove_suffix(std::strlen("/text_summary"));
    if (run_.config.size() < 100) run_.config[std::string(tag)] = json_or_text(text);
  }

  // Whether it was hyper-parameters, whose "tensor" is empty.
  bool read_plugin(std::string_view metadata) {
    std::string_view plugin;
    std::string_view content;
    WireReader field(metadata);
    while (field.next()) {
      if (field.number() != 1) continue;
      WireReader data(field.bytes());
      while (data.next()) {
        if (data.number() == 1) plugin = data.bytes();
        if (data.number() == 2) content = data.bytes();
      }
    }
    if (plugin != "hparams") return false;
    WireReader data(content);
    while (data.next()) {
      if (data.number() == 3) read_session_start(data.bytes());
      if (data.number() == 4) read_session_end(data.bytes());
    }
    return true;
  }

  void read_session_start(std::string_view message) {
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 5 && field.real() > 0) run_.run.started_at = field.real();
      if (field.number() != 1) continue;
      std::string_view key;
      std::string_view value;
      WireReader entry(field.bytes());
      while (entry.next()) {
        if (entry.number() == 1) key = entry.bytes();
        if (entry.number() == 2) value = entry.bytes();
      }
      if (!key.empty()) run_.config[std::string(key)] = value_message(value);
    }
  }

  void read_session_end(std::string_view message) {
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 2 && field.real() > 0) run_.run.ended_at = field.real();
      if (field.number() == 1 && field.integer() == 2) {
        run_.run.status = RunStatus::failed;
        run_.run.reason = "the store says that the run failed";
      }
    }
  }

  ForeignRun& run_;
  std::uint64_t bad_checksums_ = 0;
  std::uint64_t malformed_ = 0;
  std::uint64_t too_large_ = 0;
  std::uint64_t not_scalar_ = 0;
};

ForeignRun new_run(const fs::path& folder_or_file) {
  ForeignRun run;
  run.run.status = RunStatus::finished;
  run.config = Json::object();
  run.run.name = folder_or_file.filename().string();
  return run;
}

void require_numbers(const ForeignRun& run) {
  if (run.metrics.empty() && run.config.empty()) throw ImportError("holds no training metrics");
}

bool is_event_file(ImportInput& input) {
  const std::string_view head = input.head();
  return head.size() >= header_size && length_holds(head);
}

}  // namespace

Importer importers::tensorboard() {
  return {.id = "tensorboard",
          .title = "TensorBoard event file",
          .recognises = is_event_file,
          .read = [](ImportInput& input, const ImportOptions&, ImportSink& sink) {
            ForeignRun run = new_run(input.path());
            if (!input.path().empty())
              run.run.stage = run.run.title = fs::absolute(input.path()).parent_path().filename().string();
            EventReader reader(run);
            reader.read(input);
            reader.finish();
            require_numbers(run);
            tell(std::move(run), sink);
          }};
}

bool is_event_file_name(const fs::path& file) {
  return file.filename().string().find("tfevents") != std::string::npos;
}

std::vector<fs::path> event_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error) && is_event_file_name(entry.path())) files.push_back(entry.path());
  // events.out.tfevents.SECONDS.HOST...: sorting by name sorts by time.
  std::sort(files.begin(), files.end());
  return files;
}

namespace {

ForeignRun read_folder_as_run(const fs::path& folder, const std::string& name) {
  ForeignRun run = new_run(folder);
  run.run.name = run.run.stage = run.run.title = name;
  EventReader reader(run);
  std::size_t read = 0;
  for (const fs::path& file : event_files_in(folder)) {
    try {
      StoreFile input(file);
      reader.read(input);
      ++read;
    } catch (const ImportError& error) {
      run.notes.push_back(file.filename().string() + " " + error.what());
    }
  }
  reader.finish();
  if (read == 0) throw ImportError("holds no readable event file");
  require_numbers(run);
  return run;
}

}  // namespace

void read_event_folder(const fs::path& folder, ImportSink& sink) {
  tell(read_folder_as_run(folder, folder.filename().string()), sink);
}

std::vector<fs::path> event_folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (error || it.depth() > deepest_folder) return {};
    if (!it->is_regular_file(error)) continue;
    if (!is_event_file_name(it->path())) return {};
    if (folders.empty() || folders.back() != it->path().parent_path()) folders.push_back(it->path().parent_path());
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

void read_event_folders(const fs::path& folder, ImportSink& sink) {
  const std::string name = folder.filename().string();
  LadderOfRuns ladder(name, sink);
  bool any = false;
  for (const fs::path& inner : event_folders_in(folder)) {
    const std::string run = inner == folder ? "" : " " + inner.lexically_relative(folder).generic_string();
    try {
      ladder.tell(read_folder_as_run(inner, name + run));
      any = true;
    } catch (const ImportError& error) {
      sink.note(0, inner.lexically_relative(folder).generic_string() + " " + error.what());
    }
  }
  if (!any) throw ImportError("holds no readable event file");
  ladder.finish();
}

namespace {

// The event files of one run: all of a folder, or one. A program that was started again writes another file.
class GrowingEvents : public GrowingStore {
 public:
  GrowingEvents(fs::path path, bool is_folder, double since = 0)
      : GrowingStore("tensorboard", std::move(path)), is_folder_(is_folder), since_(since) {}

  std::vector<fs::path> files() const override {
    if (!is_folder_) return {path()};
    std::vector<fs::path> files = event_files_in(path());
    std::erase_if(files, [this](const fs::path& file) { return written_at(file) < since_; });
    return files;
  }
  std::string name() const override { return (is_folder_ ? path() : path().parent_path()).filename().string(); }

  StorePiece read(const StorePosition& from, bool impatient) override {
    StorePiece piece{.news = {}, .end = from};
    piece.news = new_run(path());
    piece.news.run.title = piece.news.run.stage = name();
    if (!from.state.is_object()) piece.end.state = Json::object();
    Json& marks = piece.end.state;
    EventReader reader(piece.news);
    for (const fs::path& file : files()) {
      const std::string key = file.filename().string();
      const Json mark = marks.value(key, Json());
      if (const std::string replaced = replaced_since(file, mark); !replaced.empty())
        return {.news = {}, .end = {}, .replaced = key + " " + replaced};
      const auto begin = mark.is_object() ? mark.value("bytes", std::int64_t{0}) : 0;
      std::error_code error;
      if (const auto size = fs::file_size(file, error); error || static_cast<std::int64_t>(size) == begin) continue;
      StoreFile input(file, static_cast<std::uint64_t>(begin));
      const auto progress = reader.read_some(input, static_cast<std::uint64_t>(begin), store_piece_bytes, impatient);
      const auto end = static_cast<std::int64_t>(progress.end);
      piece.is_stuck = piece.is_stuck || progress.is_stuck;
      if (end == begin) continue;
      piece.restarts = progress.restarts;
      piece.end.amount += end - begin;
      marks[key] = mark_of(file, end);
      piece.more = true;  // also of the next file
      break;
    }
    return piece;
  }

  void settle(Run& run) const override {
    run.status = RunStatus::finished;
    run.reason = "TensorBoard's files don't say how a run ended";
  }

 private:
  static double written_at(const fs::path& file) {
    std::error_code error;
    const auto time = fs::last_write_time(file, error);
    if (error) return 0;
    return std::chrono::duration<double>(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
  }

  const bool is_folder_;
  const double since_;
};

}  // namespace

std::unique_ptr<GrowingStore> growing_event_folder(const fs::path& folder, double since) {
  return std::make_unique<GrowingEvents>(folder, true, since);
}

std::unique_ptr<GrowingStore> growing_event_file(const fs::path& file) {
  return std::make_unique<GrowingEvents>(file, false);
}

}  // namespace stepladder
