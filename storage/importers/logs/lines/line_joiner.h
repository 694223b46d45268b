// Joins several printed lines into one, as another program would print it: a step with its values below it (Composer,
// OLMo), a JSON object with a value on each line, the row of a table under its header.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepladder {

class LineJoiner {
 public:
  // Whether the line belongs to the lines being joined. After the last of them, `joined()` has the result.
  bool take(std::string_view line);

  // Whether no lines are being joined, so that any line may be read on its own.
  bool idle() const { return !open_block_ && !open_object_ && columns_.empty(); }

  // Whether a joined line is complete and can be read once: it ended before this line, or at the end of the log.
  bool ready() const { return complete_; }
  std::string take_joined();
  void end();

  // Begins with a line that counts a step; its values may follow below it.
  void open_block(std::string_view line);
  bool in_block() const { return open_block_; }
  // Ends the block before a line that isn't part of it.
  void end_block() { complete_ = std::exchange(open_block_, false); }
  // Whether the last block had nothing below its first line.
  bool bare_block() const { return block_lines_ == 0; }
  // Whether some of the lines below it weren't indented: they may be anything, if none of them is a loss.
  bool plain_block() const { return is_plain_; }

  // Whether the line is a table's header with a step and a loss among its names; its rows are joined from then on.
  bool open_table(std::string_view line);

 private:
  bool take_object(std::string_view text);
  bool take_row(std::string_view line);
  bool align_cells(std::string_view line);

  std::string joined_;
  bool complete_ = false;
  bool open_block_ = false;
  bool open_object_ = false;
  int block_lines_ = 0;
  bool is_plain_ = false;
  bool counts_only_ = false;  // the block's first line is "step: 100", so the values below needn't be indented
  struct Column {
    std::string name;
    std::size_t at = 0;  // in the header
  };
  std::vector<Column> columns_;  // of the table that is open; empty: none is
  std::vector<std::string_view> cells_;
};

}  // namespace stepladder
