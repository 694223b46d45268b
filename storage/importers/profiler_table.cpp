// Timings that a profiling script printed: no training steps, but the times of passes. Each result is a block in JSON
// that holds the calls' times, behind blocks that hold its model and settings. A result that doesn't say what it timed,
// as in a printed data frame, is counted and skipped.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "storage/analysis/pass_times.h"
#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/text_lines.h"
#include "storage/importers/text.h"
#include "storage/json_values.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

using Value = nlohmann::json;

bool has(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

bool is_profiler_table(std::string_view head, const std::filesystem::path&) {
  return has(head, "profile_steps") && has(head, "mean_time") && has(head, "median_time") && has(head, "std_dev") &&
         has(head, "computation");
}

// The whole number at the end of a line, "batch_size: int = 16"; 0: there is none.
std::int64_t last_number(std::string_view line) {
  while (!line.empty() && std::string_view(" \t,;)").find(line.back()) != std::string_view::npos) line.remove_suffix(1);
  std::string digits;
  while (!line.empty() && (is_digit(line.back()) || line.back() == '_') && digits.size() < 9) {
    if (line.back() != '_') digits.insert(digits.begin(), line.back());
    line.remove_suffix(1);
  }
  return digits.empty() || !has(line, "=") ? 0 : std::stoll(digits);
}

// The moment at the beginning of a line of a log, in this computer's time zone; missing: there is none.
double stamp_of(std::string_view line) {
  std::tm time{};
  const std::string text(line.substr(0, 19));
  if (!::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &time)) return missing;
  time.tm_isdst = -1;
  return static_cast<double>(std::mktime(&time));
}

class ProfilerTable : public TextLines {
 public:
  explicit ProfilerTable(ImportSink& sink) : TextLines(sink), sink_(sink) {}

 private:
  static constexpr std::size_t longest_block = 100'000;
  static constexpr std::int64_t most_rows = 10'000;

  void take_line(std::string_view line) override {
    if (depth_ > 0 || line == "{") return take_json(line);
    constexpr std::string_view named = "profile for: ";
    if (const std::size_t at = line.find(named); at != std::string_view::npos) {
      name_ = line.substr(at + named.size());
      measured_at_ = stamp_of(line);
    }
    if (has(line, "batch_size")) batch_ = std::max(batch_, last_number(line));
    if (const std::size_t at = line.find("Device="); at != std::string_view::npos)
      device_ = line.substr(at + 7, 4) == "cuda" ? "cuda" : line.substr(at + 7, 3);
    has_code_ = has_code_ || line.starts_with("def ");
    waits_ = waits_ || has(line, "synchronize");
    has_bf16_ = has_bf16_ || has(line, "bfloat16");
    if (line.starts_with("ProfilingResult(")) ++skipped_;
    if (first_ == 0 && has(line, "mean_time")) first_ = number();
  }

  void take_json(std::string_view line) {
    block_ += line;
    block_ += '\n';
    for (const char c : line) depth_ += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth_ > 0 && block_.size() < longest_block) return;
    depth_ = 0;
    const Value json = Value::parse(std::exchange(block_, {}), nullptr, false);
    if (!json.is_object()) return;
    for (const auto& [key, value] : json.items()) facts_[key] = value;
    if (json.contains("times")) take_result(json);
  }

  void take_result(const Value& json) {
    StoredCalls calls{
        .computation = text_in(facts_, "computation"),
        .precision = flag_in(facts_, "mixed_precision") ? (has_bf16_ ? "bf16" : "mixed") : "fp32",
        .warmup = static_cast<int>(std::clamp<std::int64_t>(integer_in(facts_, "warmup_steps"), 0, 1'000'000)),
        .ms = {}};
    if (json["times"].is_array()) {
      for (const Value& each : json["times"]) {
        if (each.is_number() && each.get<double>() > 0 && each.get<double>() < 1e6)
          calls.ms.push_back(each.get<double>() * 1000);
      }
    }
    if (calls.ms.empty() || calls.computation.empty() || rows_ >= most_rows) {
      ++skipped_;
      return;
    }
    std::string model = name_.substr(0, name_.find("_" + calls.computation));
    if (model.empty()) model = "unnamed model";
    const auto known = std::ranges::find(all_, model, &StoredPasses::model);
    StoredPasses& passes = known != all_.end() ? *known : all_.emplace_back();
    if (passes.rows.empty())
      passes = {.measured_at = measured_at_,
                .model = model,
                .seq = integer_in(facts_, "context_length"),
                .vocab = integer_in(facts_, "vocab_size")};
    passes.rows.push_back(std::move(calls));
    ++rows_;
  }

  void end() override {
    for (StoredPasses& each : all_) {
      each.device = device_;
      each.batch = batch_;
      each.is_synced = waits_ || !has_code_;
      sink_.passes(each);
    }
    const std::string skipped =
        skipped_ > 0 ? "; " + plural(skipped_, "result doesn't", "results don't") + " name model, warm-up and precision"
                     : "";
    sink_.note(first_,
               "the output of a profiler, no training steps: " +
                   (rows_ > 0 ? plural(rows_, "row") + " of call times for Profile, Passes" : "no row of call times") +
                   skipped);
  }

  ImportSink& sink_;
  std::string block_;              // of JSON that has begun
  int depth_ = 0;                  // of its braces
  Value facts_ = Value::object();  // the last value of each in the blocks so far
  std::string name_, device_;
  std::int64_t batch_ = 0, first_ = 0, rows_ = 0, skipped_ = 0;
  double measured_at_ = missing;
  bool has_code_ = false, waits_ = false, has_bf16_ = false;
  std::vector<StoredPasses> all_;  // by model
};

}  // namespace

Importer importers::profiler_table() {
  return {.id = "profiler-table",
          .title = "Timings that a profiling script printed",
          .recognises = is_profiler_table,
          .reader = [](const auto&, const auto&, ImportSink& sink) { return std::make_unique<ProfilerTable>(sink); },
          .has_runs = false};
}

}  // namespace stepladder
