// Reads a file again with its importer until the step in question, for the window's "Source lines". Nothing of it is
// stored at import. A step matches by number and values, so a file that has changed is reported as such instead of
// showing a wrong line.
#include "app/import/source_lines.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "engine/stage.h"
#include "storage/importers/logs/lines/text_lines.h"
#include "storage/importers/trackers/store_file.h"

namespace stepladder {
namespace {

constexpr std::int64_t lines_around = 4;
constexpr std::size_t longest_line = 2000;  // bytes

struct SearchInterrupted {};
struct StepFound {};

bool is_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b) && is_missing(a) == is_missing(b));
}

// Looks for the step among those that an importer reads, and ends the reading at a perfect match.
class StepFinder : public ImportSink {
 public:
  StepFinder(const SourceQuestion& asked, const std::function<bool()>& interrupted)
      : asked_(asked), interrupted_(interrupted) {}

  void begin_run(const Run& run) override { stage_ = run.stage; }
  void step(const StepRecord&) override { knows_no_lines_ = true; }
  void step_on_line(const StepRecord& record, std::int64_t line) override {
    if ((++seen_ & 0xFFF) == 0 && interrupted_()) throw SearchInterrupted();
    const StepRecord& wanted = asked_.step;
    if (record.step != wanted.step || !is_same(record.loss, wanted.loss)) return;
    const int fits = 1 + (is_same(record.dt_ms, wanted.dt_ms) ? 2 : 0) + (stage_ == asked_.stage ? 1 : 0);
    if (fits < fit_) return;
    fit_ = fits;
    line_ = line;
    if (fits == 4) throw StepFound();
  }
  void end_run(const Run&) override {}
  void note(std::int64_t, std::string) override {}

  std::int64_t line() const { return line_; }
  bool knows_no_lines() const { return knows_no_lines_; }

 private:
  const SourceQuestion& asked_;
  const std::function<bool()>& interrupted_;
  std::string stage_;
  std::int64_t seen_ = 0;
  std::int64_t line_ = 0;
  int fit_ = 0;
  bool knows_no_lines_ = false;
};

// Calls `read` with the file or text as an input.
template <class Read>
void with_input(const SourceQuestion& asked, const Read& read) {
  if (asked.file.empty()) {
    MemoryInput input(asked.text);
    read(input);
  } else {
    StoreFile input(asked.file);
    read(input);
  }
}

// Keeps the lines around one.
class LinesAround : public TextLines {
 public:
  LinesAround(SourceLines& found, ImportSink& sink, const std::function<bool()>& interrupted)
      : TextLines(sink), found_(found), interrupted_(interrupted) {}

  bool is_past() const { return number() >= found_.line + lines_around; }

 private:
  void take_line(std::string_view line) override {
    if ((number() & 0xFFFF) == 0 && interrupted_()) throw SearchInterrupted();
    if (number() < found_.line - lines_around || number() > found_.line + lines_around) return;
    if (found_.lines.empty()) found_.first = number();
    // A bar that is redrawn has several texts on one line: the last one counts.
    const auto place = static_cast<std::size_t>(number() - found_.first);
    found_.lines.resize(place + 1);
    found_.lines[place] = line.substr(0, longest_line);
  }
  void end() override {}

  SourceLines& found_;
  const std::function<bool()>& interrupted_;
};

void read_around(const SourceQuestion& asked, const std::function<bool()>& interrupted, SourceLines& found) {
  with_input(asked, [&](ImportInput& input) {
    StepFinder silent(asked, interrupted);
    LinesAround around(found, silent, interrupted);
    std::string_view piece = input.next();
    for (; !piece.empty() && !around.is_past(); piece = input.next()) around.take(piece);
    if (piece.empty()) around.finish();
  });
}

constexpr bool begins_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '.';
}

}  // namespace

SourceLines find_source_lines(const SourceQuestion& asked, const std::function<bool()>& interrupted) {
  SourceLines found;
  const std::string name = asked.file.empty() ? "The pasted text" : asked.file.filename().string();
  try {
    StepFinder finder(asked, interrupted);
    try {
      with_input(asked, [&](ImportInput& input) {
        ImportOptions options = asked.options;
        options.known_stages = &known_stages();
        importer_for(input, options).read(input, options, finder);
      });
    } catch (const StepFound&) {
    }
    found.line = finder.line();
    if (found.line > 0) {
      read_around(asked, interrupted, found);
    } else if (finder.knows_no_lines()) {
      found.problem = name + " isn't a text: its steps have no lines.";
    } else {
      found.problem = name + " has no such step any more; it was changed since it was imported.";
    }
  } catch (const SearchInterrupted&) {
    found = {.problem = "Interrupted."};
  } catch (const std::exception& error) {  // ImportError; a folder
    found = {.problem = name + " " + error.what() + "."};
  }
  return found;
}

std::vector<PrintedNumber> numbers_of_step(std::string_view line, const StepRecord& step) {
  const std::array<std::pair<std::string_view, double>, 6> values{{{"loss", step.loss},
                                                                   {"validation loss", step.val_loss},
                                                                   {"step time", step.dt_ms},
                                                                   {"step time", step.dt_ms / 1000},
                                                                   {"learning rate", step.lr},
                                                                   {"gradient norm", step.grad_norm}}};
  std::vector<PrintedNumber> numbers;
  for (std::size_t at = 0; at < line.size();) {
    const bool is_inside_word =
        at > 0 && (std::isalnum(static_cast<unsigned char>(line[at - 1])) || line[at - 1] == '_');
    double value = 0;
    const auto [end, error] = begins_number(line[at]) && !is_inside_word
                                  ? std::from_chars(line.data() + at, line.data() + line.size(), value)
                                  : std::from_chars_result{line.data(), std::errc::invalid_argument};
    if (error != std::errc()) {
      ++at;
      continue;
    }
    const auto length = static_cast<std::size_t>(end - line.data()) - at;
    for (const auto& [what, wanted] : values) {
      if (!(std::fabs(value - wanted) <= 1e-9 * std::fabs(wanted))) continue;
      numbers.push_back({at, length, what});
      break;
    }
    at += length;
  }
  return numbers;
}

}  // namespace stepladder
