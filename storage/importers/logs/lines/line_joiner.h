// What some programs print over several lines becomes one line, as another program would print it: a step with its
// values below it (Composer, OLMo), a JSON object with a value on each line, the row of a table under its header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

class LineJoiner {
 public:
  // Whether the line belongs to what is being joined. Where it ends it, `joined()` has the whole.
  bool take(std::string_view line);

  // Nothing is being joined: any line may be read on its own.
  bool idle() const { return !open_block_ && !open_object_ && columns_.empty(); }

  // Something has ended before this line, or at the end of the log: the whole is there to be read once.
  bool ready() const { return complete_; }
  std::string take_joined();
  void end();

  // The line counts a step; values may follow below it.
  void open_block(std::string_view line);
  // Whether the last block had nothing below its first line.
  bool bare_block() const { return block_lines_ == 0; }

  // Whether the line is a table's header with a step and a loss among its names; its rows are joined from then on.
  bool open_table(std::string_view line);

 private:
  bool take_object(std::string_view text);
  bool take_row(std::string_view line);

  std::string joined_;
  bool complete_ = false;
  bool open_block_ = false;
  bool open_object_ = false;
  int block_lines_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string_view> cells_;
};

}  // namespace stepladder
