// W&B's offline files (run-ID.wandb): a log in LevelDB's format (blocks of 32 KiB, each record in pieces with a header
// of checksum, length and type; https://github.com/google/leveldb/blob/main/doc/log_format.md) behind a header of seven
// bytes, ":W&B", 0xbee1, version. The records are Record messages of wandb_internal.proto.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "storage/checksum.h"
#include "storage/importers/growing_source.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/metric_names.h"
#include "storage/importers/trackers/step_choice.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/importers/trackers/wire_reader.h"
#include "storage/json_values.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t file_header_size = 7;
constexpr std::size_t piece_header_size = 7;
constexpr std::size_t block_size = 32768;
constexpr std::size_t largest_record = 64 << 20;

enum PieceType { whole = 1, first = 2, middle = 3, last = 4 };

bool has_magic(std::string_view head) {
  return head.size() >= file_header_size && head.substr(0, 4) == ":W&B" &&
         static_cast<unsigned char>(head[4]) == 0xe1 && static_cast<unsigned char>(head[5]) == 0xbe;
}

// wandb writes zlib's CRC; LevelDB itself writes the masked CRC32C.
bool checksum_holds(std::uint32_t stored, std::string_view type_and_data) {
  return stored == crc32(type_and_data) || stored == masked(crc32c(type_and_data));
}

// Joins the log's records from their pieces: bytes in, records out.
class RecordLog {
 public:
  enum class Damage { is_skipped, stops };  // stops: what is damaged may be whole later

  explicit RecordLog(std::uint64_t begin = 0, Damage damage = Damage::is_skipped)
      : stream_(begin), damage_(damage), good_(begin) {}

  void give(std::string_view bytes) { stream_.give(bytes); }

  // The next whole record, valid until the next call; false if it needs more bytes. Throws ImportError for a file that
  // isn't one of W&B.
  bool next(std::string_view& record) {
    while (!is_stuck()) {
      if (stream_.offset() == 0 && !check_header()) return false;
      const std::size_t left_in_block = block_size - static_cast<std::size_t>(stream_.offset() % block_size);
      if (left_in_block < piece_header_size) {
        if (stream_.available() == 0) return false;
        stream_.skip(left_in_block);
        continue;
      }
      const std::uint64_t begins = stream_.offset();
      const std::string_view header = stream_.peek(piece_header_size);
      if (header.empty()) return false;
      std::uint32_t checksum = 0;
      std::memcpy(&checksum, header.data(), sizeof checksum);
      const std::size_t length = static_cast<unsigned char>(header[4]) | static_cast<unsigned char>(header[5]) << 8;
      const int type = static_cast<unsigned char>(header[6]);
      if (length > left_in_block - piece_header_size || type < whole || type > last) {
        // The framing is lost until the next block.
        lose(begins);
        stream_.skip(left_in_block);
        continue;
      }
      std::string_view piece = stream_.take(piece_header_size + length);
      if (piece.empty()) return false;
      piece.remove_prefix(piece_header_size - 1);  // the checksum is of the type and the data
      if (!checksum_holds(checksum, piece)) {
        lose(begins);
        continue;
      }
      if (add(piece, begins)) {
        record = record_;
        return true;
      }
    }
    return false;
  }

  std::uint64_t good() const { return good_; }  // where the last whole record ends
  bool is_stuck() const { return lost_ > 0 && damage_ == Damage::stops; }

  // There are no more bytes: notes what was lost.
  void finish(std::vector<std::string>& notes) {
    if (stream_.offset() == 0) throw ImportError(not_wandb);
    if (lost_ > 0)
      notes.push_back("left out " + plural(lost_, "damaged record") + ", the first at byte " +
                      std::to_string(first_lost_));
    if (inside_ || stream_.available() > 0)
      notes.push_back("the file ends in the middle of a record; the rest was read");
  }

 private:
  static constexpr const char* not_wandb = "is not a .wandb file: it does not begin with \":W&B\"";

  // False if it isn't there yet.
  bool check_header() {
    const std::string_view header = stream_.take(file_header_size);
    if (header.empty()) return false;
    if (!has_magic(header)) throw ImportError(not_wandb);
    if (header[6] != 0)
      throw ImportError("is a .wandb file of version " + std::to_string(static_cast<unsigned char>(header[6])) +
                        ", which is not known");
    return true;
  }

  // Adds a piece, type and data, to the record; true if that is whole.
  bool add(std::string_view piece, std::uint64_t begins) {
    const int type = piece.front();
    if (type == whole || type == first) {
      if (inside_) lose(begins);
      record_.clear();
    } else if (!inside_) {
      return false;  // its beginning was lost, which was noted
    }
    inside_ = true;
    piece.remove_prefix(1);
    if (record_.size() + piece.size() > largest_record) {
      lose(begins);
      return false;
    }
    record_.append(piece);
    if (type != whole && type != last) return false;
    inside_ = false;
    good_ = stream_.offset();
    return true;
  }

  void lose(std::uint64_t at) {
    if (lost_++ == 0) first_lost_ = at;
    inside_ = false;
  }

  ByteStream stream_;
  std::string record_;
  bool inside_ = false;  // a record whose last piece isn't there yet
  const Damage damage_;
  std::uint64_t good_;
  std::uint64_t lost_ = 0;
  std::uint64_t first_lost_ = 0;
};

// An item of history or configuration: a name, perhaps nested, and a value as JSON or typed.
struct Item {
  std::string name;
  std::string_view json;
  std::optional<double> number;
};

Item read_item(std::string_view message) {
  Item item;
  std::string_view key;
  std::string nested;
  WireReader field(message);
  while (field.next()) {
    const std::uint64_t number = field.number();
    if (number == 1) key = field.bytes();
    if (number == 2) nested += (nested.empty() ? "" : ".") + std::string(field.bytes());
    if (number == 5) item.number = static_cast<double>(field.zigzag());
    if (number == 6) item.number = field.real();
    if (number == 16) item.json = field.bytes();
  }
  item.name = key.empty() ? nested : std::string(key);
  if (double value = 0; !item.number && read_number(item.json, value)) item.number = value;
  return item;
}

double timestamp_message(std::string_view message) {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 1) seconds = field.integer();
    if (field.number() == 2) nanoseconds = field.integer();
  }
  return seconds > 0 ? static_cast<double>(seconds) + static_cast<double>(nanoseconds) * 1e-9 : missing;
}

class WandbReader {
 public:
  WandbReader(ForeignRun& run, StepChoice steps, std::int64_t next_step = 0)
      : run_(run), steps_(std::move(steps)), next_step_(next_step) {
    run_.config = Json::object();
    set_unended();
  }

  // The whole records that the log has.
  void read(RecordLog& log) {
    for (std::string_view record; log.next(record);) read_record(record);
  }

  // The records behind `begin`, about `most` bytes of them. Returns where they end.
  std::uint64_t read_some(RecordLog& log, ImportInput& input, std::uint64_t begin, std::uint64_t most) {
    for (std::string_view record; log.good() - begin < most;) {
      if (log.next(record)) {
        read_record(record);
        continue;
      }
      const std::string_view piece = log.is_stuck() ? std::string_view() : input.next();
      if (piece.empty()) break;
      log.give(piece);
    }
    finish_rows();
    return log.good();
  }

  // There are no more records. Throws ImportError if there was none.
  void finish(RecordLog& log) {
    log.finish(run_.notes);
    if (malformed_ > 0)
      run_.notes.push_back(plural(malformed_, "record is malformed and was", "records are malformed and were") +
                           " left out");
    finish_rows();
    if (files_ > 1) run_.notes.push_back("was resumed: " + std::to_string(files_) + " files hold one run");
    if (!has_run_ && run_.metrics.empty()) throw ImportError("holds no run: no record could be read");
    if (std::string note = steps_.note(); !note.empty()) run_.notes.push_back(std::move(note));
  }

  bool has_ended() const { return ended_; }
  std::int64_t next_step() const { return next_step_; }
  const StepChoice& steps() const { return steps_; }

  // Of the run record, which is among the first. Throws ImportError as read does.
  struct Identity {
    std::string group;  // "project" or "project group"
    std::string id;
  };
  static Identity identity_in(ImportInput& input) {
    ForeignRun run;
    WandbReader reader(run, StepChoice());
    RecordLog log;
    for (std::string_view record; !reader.has_run_ && reader.records_ < 20;) {
      if (log.next(record)) {
        reader.read_record(record);
        continue;
      }
      const std::string_view piece = input.next();
      if (piece.empty()) break;
      log.give(piece);
    }
    return {reader.group_.empty() ? reader.project_ : reader.project_ + " " + reader.group_,
            text_in(reader.facts_, "run_id")};
  }

  // The records that follow are those of the run's next file: it was resumed.
  void begin_next_file(RecordLog& log) {
    log.finish(run_.notes);
    set_unended();
    ++files_;
  }

 private:
  void set_unended() {
    run_.run.status = RunStatus::interrupted;
    run_.run.reason = "the file has no record of the run's end";
  }

  void read_record(std::string_view message) {
    ++records_;
    WireReader field(message);
    while (field.next()) {
      const std::uint64_t number = field.number();
      if (number == 2) read_history(field.bytes());
      if (number == 5) read_config(field.bytes());
      if (number == 12) read_definition(field.bytes());
      if (number == 17) read_run(field.bytes());
      if (number == 18) read_exit(field.bytes());
      if (number == 26) read_environment(field.bytes());
    }
    if (field.malformed()) ++malformed_;
  }

  void read_history(std::string_view message) {
    std::optional<std::int64_t> step;
    double at = missing;
    LoggedRow row;
    const auto set_step = [&](double number) {
      if (number >= 0 && number < 1e15) step = static_cast<std::int64_t>(number);
    };
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 2) {
        double number = 0;  // a step of 0 is an empty message
        WireReader inner(field.bytes());
        while (inner.next())
          if (inner.number() == 1) number = static_cast<double>(inner.integer());
        set_step(number);
      }
      if (field.number() != 1) continue;
      Item item = read_item(field.bytes());
      if (item.name == "_step") {
        if (item.number) set_step(*item.number);
      } else if (item.name == "_timestamp") {
        if (item.number) at = *item.number;
      } else if (!item.name.starts_with('_')) {  // those are wandb's own, such as _runtime
        if (item.number) row.values.emplace_back(std::move(item.name), *item.number);
      }
    }
    if (field.malformed()) {
      ++malformed_;
      return;
    }
    if (!step) step = next_step_;
    next_step_ = *step + 1;
    row.counted = *step;
    row.at = at;
    steps_.add(std::move(row), run_.metrics);
  }

  // define_metric("train/*", step_metric="iter")
  void read_definition(std::string_view message) {
    std::string name, step;
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 1 || field.number() == 2) name = field.bytes();
      if (field.number() == 4) step = field.bytes();
    }
    if (!name.empty() && !step.empty()) steps_.define(name, step);
  }

  void finish_rows() {
    steps_.flush(run_.metrics);
    if (!steps_.name().empty()) facts_["step_key"] = steps_.name();
    if (!facts_.empty()) run_.run.environment = json_text(facts_);
  }

  void read_config(std::string_view message) {
    WireReader field(message);
    while (field.next()) {
      if (field.number() != 1 && field.number() != 2) continue;
      const Item item = read_item(field.bytes());
      if (item.name.empty() || item.name.starts_with("_wandb")) continue;
      if (field.number() == 2)
        run_.config.erase(item.name);
      else if (run_.config.size() < most_settings)
        run_.config[item.name] = json_or_text(item.json);
    }
  }

  void read_run(std::string_view message) {
    has_run_ = true;
    std::string id;
    WireReader field(message);
    while (field.next()) {
      const std::string text(field.bytes());
      const std::uint64_t number = field.number();
      if (number == 1) facts_["run_id"] = id = text;
      if (number == 3) facts_["project"] = project_ = text;
      if (number == 4) read_config(field.bytes());
      if (number == 6) facts_["group"] = group_ = text;
      if (number == 7) facts_["job_type"] = text;
      if (number == 8) run_.run.title = run_.run.stage = text;
      if (number == 9) run_.run.changed = text;
      if (number == 10 && facts_["tags"].size() < most_settings) facts_["tags"].push_back(text);
      if (number == 13) facts_["host"] = text;
      if (number == 17 && files_ == 1) run_.run.started_at = timestamp_message(field.bytes());
    }
    if (run_.run.title.empty()) run_.run.title = run_.run.stage = id;
  }

  void read_exit(std::string_view message) {
    ended_ = true;
    std::int64_t code = 0;
    double seconds = missing;
    WireReader field(message);
    while (field.next()) {
      if (field.number() == 1) code = static_cast<std::int32_t>(field.integer());
      if (field.number() == 2) seconds = static_cast<double>(field.integer());
    }
    run_.run.status = code == 0 ? RunStatus::finished : RunStatus::failed;
    run_.run.reason = code == 0 ? "" : "the program ended with exit status " + std::to_string(code);
    // In whole seconds, so the last point's time may be more exact.
    if (seconds > 0 && !is_missing(run_.run.started_at) && is_missing(run_.metrics.last_at()))
      run_.run.ended_at = run_.run.started_at + seconds;
  }

  void read_environment(std::string_view message) {
    WireReader field(message);
    while (field.next()) {
      const std::string text(field.bytes());
      if (text.empty()) continue;
      if (field.number() == 1) facts_["os"] = text;
      if (field.number() == 2) facts_["python"] = text;
      if (field.number() == 6) facts_["program"] = text;
      if (field.number() == 18) run_.run.hardware = text;
      if (field.number() == 25) facts_["cuda"] = text;
    }
  }

  ForeignRun& run_;
  StepChoice steps_;
  Json facts_ = Json::object();
  std::string project_;
  std::string group_;
  std::int64_t next_step_;
  std::uint64_t records_ = 0;
  std::uint64_t malformed_ = 0;
  int files_ = 1;
  bool has_run_ = false;
  bool ended_ = false;
};

// A single file.
class WandbFile : public ImportReader {
 public:
  WandbFile(fs::path path, const std::string& step_key, ImportSink* sink = nullptr)
      : path_(std::move(path)), sink_(sink), reader_(run_, StepChoice(step_key)) {}

  void take(std::string_view bytes) override {
    log_->give(bytes);
    reader_.read(*log_);
  }
  void finish() override { pass_on(take_run(), *sink_); }

  void begin_next_file() {
    reader_.begin_next_file(*log_);
    log_.emplace();
  }

  // Instead of `finish`, for a sink that gets several.
  ForeignRun take_run() {
    reader_.finish(*log_);
    run_.run.name = import_name(path_, run_.run.title);
    return std::move(run_);
  }

 private:
  const fs::path path_;
  ImportSink* const sink_;
  ForeignRun run_;
  std::optional<RecordLog> log_ = RecordLog();
  WandbReader reader_;
};

class GrowingWandb : public GrowingSource {
 public:
  GrowingWandb(fs::path file, std::string step_key)
      : GrowingSource("wandb", std::move(file)), step_key_(std::move(step_key)) {}

  std::vector<fs::path> files() const override { return {path()}; }
  std::string name() const override { return path().stem().string(); }

  // A resumed run has several: (offline-)run-DATE_TIME-ID/run-ID.wandb.
  std::string continues() const override {
    if (!continues_) continues_ = earlier_file();
    return *continues_;
  }

  std::string earlier_file() const {
    const auto date_of = [](const fs::path& folder) {
      const std::string name = folder.filename().string();
      return name.substr(name.starts_with("offline-") ? 8 : 0);
    };
    const fs::path own = path().parent_path();
    if (!date_of(own).starts_with("run-")) return {};
    fs::path before;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(own.parent_path(), error)) {
      const fs::path& folder = entry.path();
      if (entry.is_symlink(error) || !date_of(folder).starts_with("run-") || date_of(folder) >= date_of(own)) continue;
      if (!before.empty() && date_of(folder) < date_of(before)) continue;
      if (!folder.filename().string().ends_with(path().stem().string().substr(3))) continue;  // "run-ID"
      if (fs::is_regular_file(folder / path().filename(), error)) before = folder;
    }
    return before.empty() ? std::string() : format() + " " + (before / path().filename()).string();
  }

  SourcePiece read(const SourcePosition& from, bool impatient) override {
    SourcePiece piece{.news = {}, .end = from};
    piece.restarts = from.amount == 0;
    const auto begin = static_cast<std::uint64_t>(from.amount);
    const Json mark = field_in(from.state, "file");
    const RegularFile* const file = hold(path(), from.amount);
    if (!file) return piece;
    if (std::string replaced = replaced_since(*file, mark); !replaced.empty()) {
      piece.replaced = replaced;
      return piece;
    }
    StoreFile input(*file, path(), begin);
    RecordLog log(begin, impatient ? RecordLog::Damage::is_skipped : RecordLog::Damage::stops);
    const std::int64_t next_step = integer_in(from.state, "next_step");
    WandbReader reader(piece.news, StepChoice(step_key_, field_in(from.state, "step_choice")),
                       std::clamp<std::int64_t>(next_step, 0, highest_logged_step));
    const std::uint64_t end = reader.read_some(log, input, begin, source_piece_bytes);
    if (const std::string& title = piece.news.run.title; !title.empty())
      piece.news.run.name = import_name(path(), title);
    piece.is_stuck = log.is_stuck();
    piece.has_ended = reader.has_ended();
    piece.more = end - begin >= source_piece_bytes;
    if (end == begin) return piece;
    piece.end.amount = static_cast<std::int64_t>(end);
    piece.end.state = {{"file", mark_of(*file, piece.end.amount)},
                       {"next_step", reader.next_step()},
                       {"step_choice", reader.steps().state()}};
    return piece;
  }

  void finish_idle(Run& run) const override {
    run.status = RunStatus::interrupted;
    run.reason = "the file has no record of the run's end";
  }

 private:
  const std::string step_key_;
  mutable std::optional<std::string> continues_;
};

}  // namespace

Importer importers::wandb() {
  return {.id = "wandb",
          .title = "W&B offline file",
          .recognises = [](std::string_view head, const auto&) { return head.starts_with(":W&B"); },
          .reader = [](const fs::path& path, const ImportOptions& options,
                       ImportSink& sink) { return std::make_unique<WandbFile>(path, options.step_key, &sink); }};
}

std::unique_ptr<GrowingSource> growing_wandb_file(const fs::path& file, const std::string& step_key) {
  return std::make_unique<GrowingWandb>(file, step_key);
}

std::vector<fs::path> wandb_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  const auto look_into = [&](const fs::path& inner) {
    for (const auto& entry : fs::directory_iterator(inner, error))
      if (entry.is_regular_file(error) && entry.path().extension() == ".wandb") files.push_back(entry.path());
  };
  look_into(folder);
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    // "latest-run" is a link to one of the others.
    if (entry.is_directory(error) && !entry.is_symlink(error) &&
        (name.starts_with("offline-run-") || name.starts_with("run-")))
      look_into(entry.path());
  }
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) {
    // (offline-)run-DATE_TIME-ID: sorting by the folder's name sorts by time.
    return a.parent_path().filename() != b.parent_path().filename()
               ? a.parent_path().filename() < b.parent_path().filename()
               : a.filename() < b.filename();
  });
  return files;
}

void read_wandb_folder(const fs::path& folder, const ImportOptions& options, ImportSink& sink) {
  std::map<std::string, std::vector<std::vector<fs::path>>> groups;  // of the files of each run, oldest first
  std::map<std::string, std::size_t> run_of;                         // by group and id
  for (const fs::path& file : wandb_files_in(folder)) {
    try {
      StoreFile input(file);
      const WandbReader::Identity identity = WandbReader::identity_in(input);
      auto& runs = groups[identity.group];
      const std::string key = identity.group + "\n" + (identity.id.empty() ? file.string() : identity.id);
      const auto [known, is_new] = run_of.try_emplace(key, runs.size());
      if (is_new) runs.emplace_back();
      runs[known->second].push_back(file);
    } catch (const ImportError& error) {
      sink.note(0, file.filename().string() + " " + error.what());
    }
  }
  if (groups.empty()) throw ImportError("holds no readable .wandb file");
  for (const auto& [name, runs] : groups) {
    LadderOfRuns ladder(name, sink);
    for (const std::vector<fs::path>& files : runs) {
      try {
        WandbFile reader(files.front(), options.step_key);
        for (const fs::path& file : files) {
          if (file != files.front()) reader.begin_next_file();
          StoreFile input(file);
          push_all(input, reader);
        }
        ladder.add(reader.take_run());
      } catch (const ImportError& error) {
        sink.note(0, files.front().filename().string() + " " + error.what());
      }
    }
    ladder.finish();
  }
}

}  // namespace stepladder
