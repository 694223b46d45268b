// A reader of text that takes one line at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/line_reader.h"

namespace stepladder {

class TextLines : public ImportReader {
 public:
  explicit TextLines(ImportSink& sink) : reader_(sink) {}

  void take(std::string_view bytes) override {
    reader_.give(bytes);
    take_lines();
  }
  void finish() override {
    reader_.finish();
    take_lines();
    end();
  }

 protected:
  virtual void take_line(std::string_view line) = 0;  // which isn't empty
  virtual void end() = 0;                             // after the last line

  std::int64_t number() const { return reader_.number(); }      // of the line, from 1
  bool is_unended() const { return reader_.has_given_rest(); }  // it is the last one, and has no end

 private:
  void take_lines() {
    for (std::string_view line; reader_.next(line);) take_line(line);
  }

  LineReader reader_;
};

}  // namespace stepladder
