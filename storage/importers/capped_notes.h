// Notes of one kind: the sink gets the first twenty and, at the end, the number of the others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "storage/importers/importer.h"

namespace stepladder {

class CappedNotes {
 public:
  // `rest` ends the last note: "3 more " + rest. It and the sink outlive this.
  CappedNotes(ImportSink& sink, std::string_view rest) : sink_(&sink), rest_(rest) {}

  void note(std::int64_t line, std::string text) {
    if (++count_ <= most) sink_->note(line, std::move(text));
  }

  void finish() {
    if (count_ > most) sink_->note(0, std::to_string(count_ - most) + " more " + std::string(rest_));
    count_ = 0;
  }

 private:
  static constexpr int most = 20;

  ImportSink* sink_;
  std::string_view rest_;
  int count_ = 0;
};

}  // namespace stepladder
