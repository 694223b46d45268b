// Reads a growing log or table piece by piece. The file may be rotated, cut, removed or written again meanwhile: what
// it was is read to its end first.
#include "storage/importers/logs/growing_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "storage/content_hash.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/json_values.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t text_piece_bytes = 256 << 10;
constexpr std::int64_t output_piece_bytes = 4 << 10;     // all lines of a piece get the time of its last
constexpr std::chrono::milliseconds short_silence(500);  // then what may still be completed is passed on as it is
constexpr std::int64_t silent_bytes = 4 << 20;  // of a table without an event so far: then it is left to `import`
constexpr std::size_t head_bytes = 65536;
constexpr std::ptrdiff_t most_first = 3;  // steps by which another file is known early

// Keeps what a reader passes on.
class EventSink : public ImportSink {
 public:
  void begin_run(const Run& run) override { events_.emplace_back(RunBegins{run}); }
  void step(const StepRecord& record) override { events_.emplace_back(LoggedStep{record}); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    events_.emplace_back(LoggedPoints{metric, {points.begin(), points.end()}});
  }
  void end_run(const Run& run) override { events_.emplace_back(RunFacts{run}); }
  void note(std::int64_t, std::string) override {}

  std::vector<SourceEvent> take() { return std::exchange(events_, {}); }

 private:
  std::vector<SourceEvent> events_;
};

// The number of the events so far, and a hash of the names and numbers in them.
class EventCount {
 public:
  void add(const SourceEvent& event) {
    ++events_;
    std::visit([this](const auto& each) { add(each); }, event);
  }
  std::int64_t events() const { return events_; }
  std::string hash() const { return hash_.text(); }

 private:
  void add(const RunBegins& begins) { add(begins.run.stage); }
  void add(const RunFacts&) {}
  void add(const LoggedStep& step) {
    const StepRecord& record = step.record;
    add(record.step);
    for (const double value : {record.loss, record.val_loss, record.dt_ms, record.lr, record.grad_norm}) add(value);
  }
  void add(const LoggedPoints& logged) {
    add(logged.metric.name);
    for (const MetricPoint& point : logged.points) {
      add(point.step);
      add(point.value);
    }
  }
  void add(const std::string& text) { hash_.take(text + "\n"); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void add(Number number) { hash_.take({reinterpret_cast<const char*>(&number), sizeof number}); }

  std::int64_t events_ = 0;
  ContentHash hash_;
};

// Whole lines only; empty if there is none yet. A line longer than a piece is taken in parts.
std::string lines_at(const RegularFile& file, std::int64_t begin, std::int64_t most) {
  std::string bytes = file.read_at(begin, static_cast<std::size_t>(most));
  const std::size_t end = bytes.rfind('\n');
  if (end != std::string::npos)
    bytes.resize(end + 1);
  else if (std::ssize(bytes) < most)
    bytes.clear();
  return bytes;
}

bool are_equal(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::int64_t runs_in(const std::vector<SourceEvent>& events) {
  return std::ranges::count_if(events,
                               [](const SourceEvent& event) { return std::holds_alternative<RunBegins>(event); });
}

const StepRecord* step_in(const SourceEvent& event) {
  const auto* const step = std::get_if<LoggedStep>(&event);
  return step ? &step->record : nullptr;
}

class GrowingText : public GrowingSource {
 public:
  GrowingText(fs::path path, ImportOptions options, std::function<double(std::int64_t)> written_at)
      : GrowingSource("text", std::move(path)), options_(std::move(options)), written_at_(std::move(written_at)) {
    options_.live = true;
  }

  const std::string& format() const override { return importer_ ? importer_->id : GrowingSource::format(); }
  std::vector<fs::path> files() const override { return {path()}; }
  std::string name() const override { return path().stem().string(); }

  // Also when what was held back is due.
  bool has_changed() override {
    const bool changed = GrowingSource::has_changed();
    if (changed) grown_ = Clock::now();
    is_stamp_new_ = is_stamp_new_ || changed;
    return !is_foreign_ && (changed || (!is_held_passed_ && Clock::now() - grown_ > short_silence));
  }

  SourcePiece read(const SourcePosition& from, bool) override {
    SourcePiece piece{.news = {}, .end = from};
    if (!refused_.empty()) {
      is_foreign_ = true;
      let_go();
      throw ImportError(std::exchange(refused_, {}));
    }
    if (from != passed_) restart(from);
    if (is_foreign_ || (!reader_ && !begin())) return piece;
    if (std::exchange(is_stamp_new_, false)) is_old_ = is_old_ || is_replaced();
    const bool is_rewritten = is_old_ && file_->is_at(path());
    const std::string bytes =
        is_rewritten ? "" : lines_at(*file_, given_, written_at_ ? output_piece_bytes : text_piece_bytes);
    if (!bytes.empty()) {
      take(bytes);
      pass_lines(piece);
    } else if (is_old_) {
      pass_rest(piece);
    } else if (!is_held_passed_ && Clock::now() - grown_ > short_silence) {
      is_held_passed_ = true;
      EventSink held;
      reader_->pass_held(held);
      pass_held(piece, held.take());
    }
    passed_ = piece.end;
    return piece;
  }

  SourcePiece finish(const SourcePosition& from) override {
    SourcePiece piece{.news = {}, .end = from};
    if (from != passed_) restart(from);
    if (is_foreign_ || (!reader_ && !begin())) return piece;
    const bool is_cut = give_rest();
    std::vector<SourceEvent> events = sink_.take();
    if (!skip_known(events)) return replaced();
    if (count_.events() < skipped_until_) return replaced();
    const EventCount before = count_;
    const std::string refusal = add_last(events, is_cut);
    if (!events.empty()) {
      piece.events = std::move(events);
      piece.end = {given_, state_of(before)};
    }
    let_go();
    restart(piece.end);  // the reader is used up
    if (before.events() == 0 && piece.events.empty() && !refusal.empty()) throw ImportError(refusal);
    return piece;
  }

  void finish_idle(Run& run) const override {
    const bool is_early = is_over(end_.status) && end_.status != RunStatus::finished;
    run.status = is_early ? end_.status : RunStatus::finished;
    run.reason = is_early ? end_.reason : "its file doesn't say how a run ends";
  }

 private:
  using Losses = std::map<std::int64_t, double>;  // by step

  // Chooses the importer by the first whole lines; false if there is none yet, or none that reads such a file.
  bool begin() {
    file_ = hold(path(), given_);
    const std::string head = file_ ? lines_at(*file_, 0, text_piece_bytes) : "";
    if (head.empty()) return false;
    try {
      importer_ = &importer_for(std::string_view(head).substr(0, head_bytes), path(), options_);
    } catch (const ImportError&) {
      importer_ = nullptr;
    }
    if (!importer_ || (importer_->id != "csv" && importer_->id != "log")) {
      importer_ = nullptr;
      is_foreign_ = true;
      let_go();
      return false;
    }
    sink_.take();
    reader_ = importer_->reader(path(), options_, sink_);
    return true;
  }

  // Another reader has passed on what is before `from`.
  void restart(const SourcePosition& from) {
    start_again();
    const Json& state = from.state;
    skipped_until_ = integer_in(state, "events");
    skipped_hash_ = text_in(state, "hash");
    held_ = losses_in(state, "held");
    first_ = losses_in(state, "first");
    last_ = integer_in(state, "last", -1);
    all_are_parts_ = state.is_object() && state.contains("ended");  // of an earlier version
    rereads_ = state.is_object();
    passed_ = from;
  }

  static Losses losses_in(const Json& state, const char* name) {
    Losses losses;
    if (state.is_object() && state.contains(name) && state[name].is_array())
      for (const Json& each : state[name])
        if (each.is_object()) losses[integer_in(each, "step")] = number_in(each, "loss");
    return losses;
  }
  static Json json_of(const Losses& losses) {
    Json json = Json::array();
    for (const auto& [step, loss] : losses) {
      Json each = {{"step", step}};
      if (!is_missing(loss))
        each["loss"] = std::isfinite(loss) ? Json(loss)
                       : std::isnan(loss)  ? "NaN"
                       : loss > 0          ? "Infinity"
                                           : "-Infinity";
      json.push_back(std::move(each));
    }
    return json;
  }

  void start_again() {
    reader_.reset();
    file_ = nullptr;
    count_ = {};
    given_ = 0;
    mark_ = {};
    begun_ = is_old_ = rereads_ = all_are_parts_ = false;
    is_held_passed_ = true;
    skipped_until_ = 0;
  }

  SourcePiece replaced() {
    restart({});
    return {.news = {}, .end = {}, .replaced = "its beginning isn't what it was"};
  }

  // Another file has its name, or it was written again.
  bool is_replaced() const {
    std::error_code error;
    if (!file_->is_at(path())) return fs::exists(path(), error);
    return given_ > 0 && !replaced_since(*file_, mark_).empty();
  }

  void take(std::string_view bytes) {
    given_ += std::ssize(bytes);
    is_held_passed_ = false;
    try {
      reader_->take(bytes);
    } catch (const std::exception& error) {  // ImportError
      refused_ = error.what();               // after what it has read
    }
  }

  // What there is behind the lines, since no more of it comes. Returns whether that is a line without an end.
  bool give_rest() {
    for (std::string bytes = lines_at(*file_, given_, text_piece_bytes); !bytes.empty() && refused_.empty();
         bytes = lines_at(*file_, given_, text_piece_bytes))
      take(bytes);
    const std::string rest = file_->read_at(given_, text_piece_bytes);
    if (rest.empty() || !refused_.empty()) return false;
    take(rest);
    return true;
  }

  // Adds what the reader has held back, and completes the events. Returns why there is nothing to read, if so.
  std::string add_last(std::vector<SourceEvent>& events, bool is_cut) {
    const std::size_t lines = events.size();
    std::string refusal = finish_reader();
    for (SourceEvent& event : sink_.take()) events.push_back(std::move(event));
    complete(events);
    erase_held(std::span(events).first(lines));
    add_held(std::span(events).subspan(lines));
    const auto last = std::find_if(events.rbegin(), events.rend(), [](const SourceEvent& e) { return step_in(e); });
    if (is_cut && last != events.rend()) held_[step_in(*last)->step] = missing;  // the line may be completed
    return refusal;
  }

  // Empty, or why there is nothing to read.
  std::string finish_reader() {
    try {
      reader_->finish();
    } catch (const std::exception& error) {  // ImportError
      return error.what();
    }
    return {};
  }

  void pass_lines(SourcePiece& piece) {
    mark_ = mark_of(*file_, given_);
    std::vector<SourceEvent> events = sink_.take();
    if (!skip_known(events)) {
      piece = replaced();
      return;
    }
    piece.more = true;
    if (count_.events() == 0 && events.empty() && given_ > silent_bytes && !written_at_)
      refused_ = "holds several runs in one table, which only an import of the whole file reads";
    if (events.empty()) return;
    piece.events = std::move(events);
    complete(piece.events);
    begun_ = begun_ || runs_in(piece.events) > 0;
    erase_held(piece.events);
    rereads_ = false;
    piece.end = {given_, state_of(count_)};
  }

  // What may still be completed: it is passed on again, complete, later.
  void pass_held(SourcePiece& piece, std::vector<SourceEvent> events) {
    if (events.empty()) return;
    if (count_.events() < skipped_until_) {  // too short yet to be known by its hash
      const auto is_beyond = [this](const SourceEvent& event) {
        const StepRecord* const step = step_in(event);
        return step && last_ >= 0 && step->step > last_;
      };
      if (is_another(events) || std::ranges::any_of(events, is_beyond)) piece = replaced();
      return;
    }
    if (runs_in(events) > (begun_ ? 0 : 1)) return;
    piece.events = std::move(events);
    complete(piece.events);
    add_held(piece.events);
    piece.end.state = state_of(count_);
  }

  // Of a file that was replaced: the rest of what it was. The next piece is of the file that has its name now.
  void pass_rest(SourcePiece& piece) {
    const bool is_cut = !file_->is_at(path()) && give_rest();
    std::vector<SourceEvent> events = sink_.take();
    if (skip_known(events) && count_.events() >= skipped_until_) {
      const EventCount counted = count_;
      add_last(events, is_cut);
      if (!events.empty()) {
        piece.events = std::move(events);
        piece.end.state = state_of(counted);
      }
    }
    let_go();
    restart(piece.end);
    piece.more = true;
  }

  // Drops what an earlier reader has passed on. False if the file's beginning says something else.
  bool skip_known(std::vector<SourceEvent>& events) {
    std::size_t known = 0;
    if (count_.events() == 0 && is_another(events)) return false;
    for (; known < events.size() && count_.events() < skipped_until_; ++known) {
      count_.add(events[known]);
      begun_ = begun_ || std::holds_alternative<RunBegins>(events[known]);
      if (count_.events() == skipped_until_ && count_.hash() != skipped_hash_) return false;
    }
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(known));
    for (const SourceEvent& event : events) {
      count_.add(event);
      if (const StepRecord* const step = step_in(event)) {
        if (std::ssize(first_) < most_first) first_.try_emplace(step->step, step->loss);
        last_ = std::max(last_, step->step);
      }
    }
    return true;
  }

  // Of a file that is read again: whether one of its first steps, or of those that were only held back, has another
  // loss now. A later line of the same step is a newer attempt, or another run's.
  bool is_another(const std::vector<SourceEvent>& events) const {
    const auto differs = [](const Losses& known, const StepRecord& step) {
      const auto found = known.find(step.step);
      return found != known.end() && !is_missing(found->second) && !are_equal(found->second, step.loss);
    };
    std::set<std::int64_t> seen;
    for (const SourceEvent& event : events) {
      const StepRecord* const step = step_in(event);
      if (!rereads_ || !step || !seen.insert(step->step).second) continue;
      if (count_.events() == 0 && seen.size() <= first_.size() && differs(first_, *step)) return true;
      if (skipped_until_ == 0 && differs(held_, *step)) return true;
    }
    return false;
  }

  // Completes events that are passed on.
  void complete(std::vector<SourceEvent>& events) {
    const double now = written_at_ ? written_at_(given_ - 1) : unix_now();
    bool is_later = begun_;
    for (SourceEvent& event : events) {
      if (const auto* const facts = std::get_if<RunFacts>(&event)) end_ = facts->run;
      if (auto* const step = std::get_if<LoggedStep>(&event)) {
        step->is_part = all_are_parts_ || held_.contains(step->record.step);
        if (is_missing(step->record.at)) step->record.at = now;
      } else if (auto* const begins = std::get_if<RunBegins>(&event)) {
        begins->is_first = !std::exchange(is_later, true);
      }
    }
  }

  void add_held(std::span<const SourceEvent> events) {
    for (const SourceEvent& event : events)
      if (const StepRecord* const step = step_in(event)) held_[step->step] = step->loss;
  }
  void erase_held(std::span<const SourceEvent> events) {
    for (const SourceEvent& event : events)
      if (const StepRecord* const step = step_in(event)) held_.erase(step->step);
  }

  Json state_of(const EventCount& count) const {
    Json state = {{"events", count.events()}, {"hash", count.hash()}};
    if (!held_.empty()) state["held"] = json_of(held_);
    if (!first_.empty()) state["first"] = json_of(first_);
    if (last_ >= 0) state["last"] = last_;
    return state;
  }

  ImportOptions options_;
  const std::function<double(std::int64_t)> written_at_;
  const Importer* importer_ = nullptr;
  EventSink sink_;
  std::unique_ptr<ImportReader> reader_;
  const RegularFile* file_ = nullptr;
  SourcePosition passed_{.amount = -1, .state = {}};  // before any piece: unlike every position
  std::int64_t given_ = 0;                            // bytes
  Json mark_;                                         // of these
  EventCount count_;
  std::int64_t skipped_until_ = 0;  // so many events an earlier reader has passed on, with this hash
  std::string skipped_hash_;
  Losses first_;  // the first steps
  Losses held_;   // steps that were passed on while they were held back
  bool is_held_passed_ = true;
  std::int64_t last_ = -1;      // the highest step that was passed on
  bool all_are_parts_ = false;  // an earlier version has stored the last steps already
  bool rereads_ = false;        // another reader has passed on what is read now
  bool begun_ = false;          // the reader has begun a run, for good
  bool is_stamp_new_ = false;   // since the file was last looked at
  bool is_old_ = false;         // another file has its name, or it was written again
  bool is_foreign_ = false;
  Run end_;              // how the last run ended, as far as the file says so
  std::string refused_;  // why the next piece can't be read
  Clock::time_point grown_ = Clock::now();
};

}  // namespace

std::unique_ptr<GrowingSource> growing_text(const fs::path& file, const ImportOptions& options) {
  return std::make_unique<GrowingText>(file, options, nullptr);
}

std::unique_ptr<GrowingSource> growing_output(const fs::path& file, const ImportOptions& options,
                                              std::function<double(std::int64_t)> written_at) {
  ImportOptions of_log = options;
  of_log.format = "log";
  return std::make_unique<GrowingText>(file, of_log, std::move(written_at));
}

}  // namespace stepladder
