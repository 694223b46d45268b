// The lines of a log, one item each: a record spread over several lines is joined, bars redrawn on one line are cut
// apart, and each line is marked as a step or as words.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/line_end.h"
#include "storage/importers/logs/lines/line_joiner.h"
#include "storage/importers/logs/lines/line_prefix.h"
#include "storage/importers/logs/lines/line_reader.h"
#include "storage/importers/logs/lines/line_writers.h"
#include "storage/importers/logs/lines/step_line.h"

namespace stepladder {

struct LogLine {
  enum class Kind : std::uint8_t {
    words,
    step,          // measures a step
    bar,           // a progress bar without a loss: only counts
    epoch,         // "Epoch 3": the lines below belong to it
    bare_loss,     // a loss without a count; counts as words if no step lacks a loss
    record,        // a dictionary that counts a step and holds other numbers, but no loss or time
    summary,       // sums up the whole training
    table_header,  // names the columns of the rows below
    fence,         // ``` opens or closes a block of a document: `place` is where the next line is
    part,          // of a step that is joined from several lines
  };
  // Inside or outside a document's block, and whether that holds source code.
  enum class Place : std::uint8_t { outside, fenced, code };

  Kind kind = Kind::words;
  Place place = Place::outside;
  bool is_beside = false;  // a step's line that gives the step above another loss, and begins otherwise
  bool joined = false;     // words that looked like the first of several lines
  std::string_view text;
  std::int64_t number = 0;  // from 1; of a joined line, its first line's
  double at = missing;      // of a step: unix seconds of the time stamp in front
  StepLine step;            // only of the kinds step, bar, epoch, bare_loss, record and summary
};

class LogLines {
 public:
  // `checks_last`: a last line without an end that may be cut is left out with a note.
  explicit LogLines(ImportSink& sink, bool checks_last = false)
      : sink_(sink), reader_(sink), checks_last_(checks_last) {}

  // As LineReader's.
  void give(std::string_view bytes) { reader_.give(bytes); }
  void finish();

  // The next line, valid until the next call; null if it needs more bytes.
  const LogLine* next();

  std::int64_t number() const { return number_; }  // of the last line read
  const LineWriters& writers() const { return writers_; }

 private:
  bool next_line(std::string_view& line);
  bool lacks_head(std::string_view line) const;
  bool may_be_cut(std::string_view line, bool is_redrawn);
  void keep_as_known(std::string_view line);
  void take_prefixed(std::string_view line, bool is_redrawn);
  void take(std::string_view line);
  std::string_view with_points(std::string_view line);
  std::string_view with_sign(std::string_view line);
  void take_list(std::string_view line, int wanted);
  bool take_history(std::string_view line);
  void take_bars(std::string_view line);
  void take_joined();
  void take_line(std::string_view line);
  bool take_fence(std::string_view line);
  bool in_summary(std::string_view line);
  bool take_step(std::string_view text, bool in_literal);
  bool confirms(std::string_view text, const ReadLine& read);
  void take_doubtful();
  bool knows_head(std::string_view head) const;
  void know_head(std::string_view head);
  bool in_literal(std::string_view line);
  void set_time(LogLine& line);
  LogLine& push(LogLine::Kind kind, std::string_view text);

  // The lines made from the last line read. They are reused, so that most need no memory of their own.
  struct Ready {
    std::vector<LogLine> lines = std::vector<LogLine>(1);
    std::size_t filled = 0;
    std::size_t given = 0;
  };

  ImportSink& sink_;
  LineReader reader_;
  const bool checks_last_;
  std::string last_step_;    // the last line that counts or measures a step
  KnownEnds step_lines_{8};  // one of each of the last kinds of such lines
  bool says_step_ = false;   // the line just taken
  LinePrefix prefix_;
  LineWriters writers_;
  double prefix_time_ = missing;
  std::vector<std::pair<std::string, std::int64_t>> first_lines_;  // with their numbers
  std::size_t next_first_ = 0;
  LineJoiner joiner_;
  TimeStamp stamp_;
  LogLine::Place place_ = LogLine::Place::outside;
  int literal_left_ = 0;  // lines that may still belong to a script's data
  bool has_decimal_commas_ = false;
  bool in_summary_ = false;
  bool has_steps_ = false;
  std::deque<std::string> with_points_;  // lines that are being given
  std::string joined_;
  std::deque<std::string> heads_;  // of the last kinds of steps: what is in front of the first measured number
  struct Doubtful {
    std::string text;
    std::size_t head = 0;
    std::int64_t number = 0, step = -1;
  };
  std::vector<Doubtful> doubtful_;  // alike, not yet steps
  std::deque<Doubtful> confirmed_;  // the lines that are being given
  std::int64_t block_number_ = 0;   // of the line that opened a block of several; 0: none is open
  std::int64_t number_ = 0;
  bool finished_ = false;
  bool ended_ = false;
  Ready ready_;
};

}  // namespace stepladder
