// The beginning of a line is its text in front of the word that counts the step, without dates and clocks. Beginnings
// tell writers apart only where each counts its own steps up, and together they keep going back.
#include "storage/importers/logs/lines/line_writers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t furthest = 64;  // no launcher's name is longer
constexpr std::size_t most_writers = 64;
constexpr std::int64_t least_steps = 3;  // of a writer, and least returns to one

// {"step": 1, "run": "a"}: "run": "a", wherever it is; empty if the line names no run.
std::string_view run_in(std::string_view line) {
  if (!line.starts_with('{')) return {};
  for (const std::string_view key : {"\"run\":", "\"run_id\":", "\"run_name\":", "\"experiment\":", "\"seed\":"})
    if (const std::size_t at = line.find(key); at != line.npos)
      return line.substr(at, std::min(line.find_first_of(",}", at) - at, furthest));
  return {};
}

std::string beginning_of(std::string_view line) {
  std::size_t end = 0;
  const auto counts = [&](std::string_view word) { return equal_in_lower(line.substr(end, word.size()), word); };
  while (end < std::min(furthest, line.size()) && !counts("step") && !counts("iter")) ++end;
  std::string beginning;
  for (std::string_view rest = line.substr(0, end); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const bool is_time = word.size() > 4 && word.find_first_not_of("0123456789:.,-/TZ+[]") == std::string_view::npos;
    if (!is_time) beginning += std::string(word) + ' ';
  }
  return beginning;
}

// "logs/run1.txt:", "run1.log:12:", as grep prints it: the name; empty if it is none.
std::string_view file_in(std::string_view beginning) {
  const std::string_view name = beginning.substr(0, beginning.find(':'));
  const std::size_t point = name.rfind('.');
  return name.size() < beginning.size() && point != std::string_view::npos && point + 1 < name.size() &&
                 is_alpha(name[point + 1]) && name.find_first_of(" []=") == std::string_view::npos
             ? name
             : std::string_view();
}

std::string both(std::string_view one, std::string_view other) {
  return "\"" + std::string(trimmed(one)) + "\" and \"" + std::string(trimmed(other)) + "\"";
}

}  // namespace

bool LineWriters::add(std::string_view line, std::int64_t step, double loss) {
  if (gave_up_) return false;
  std::string beginning(run_in(line));
  if (beginning.empty()) beginning = beginning_of(line);
  if (const std::string_view file = file_in(beginning); !file.empty()) beginning = file;
  const bool names_run = beginning.starts_with('"') || !file_in(beginning + ":").empty();
  const auto [place, is_new] = writers_.try_emplace(beginning);
  Writer& writer = place->second;
  if (step == writer.step) return false;
  if (step < writer.step || writers_.size() > most_writers) {  // a resumed run; or values
    const bool gives_up = writers_.size() > most_writers;
    *this = {};
    gave_up_ = gives_up;
    return false;
  }
  writer = {step, writer.steps + 1};
  const bool back = last_step_ >= 0 && beginning != last_ && step <= last_step_ &&
                    std::fabs(loss - last_loss_) > 1e-3 * std::fabs(last_loss_);
  returns_ += beginning != last_ && !is_new;
  backs_ += back;
  behind_ += back && step < last_step_;
  if (back && is_new && names_run && last_names_run_) named_ = both(last_, beginning);
  if (back && step == last_step_ && writer.steps < writers_.find(last_)->second.steps) return true;
  last_ = std::move(beginning);
  last_names_run_ = names_run;
  last_step_ = step;
  last_loss_ = loss;
  return false;
}

std::string LineWriters::several() const {
  if (!named_.empty() || returns_ < least_steps || backs_ < least_steps) return named_;
  const std::pair<const std::string, Writer>*most = nullptr, *next = nullptr;
  for (const auto& writer : writers_) {
    if (!most || writer.second.steps > most->second.steps)
      next = std::exchange(most, &writer);
    else if (!next || writer.second.steps > next->second.steps)
      next = &writer;
  }
  if (!next || next->second.steps < least_steps) return {};
  // Lines beside those of the steps, of a checkpoint or a benchmark, are few, and right behind the step.
  if (behind_ < least_steps && 2 * next->second.steps < most->second.steps) return {};
  return both(std::min(most->first, next->first), std::max(most->first, next->first));
}

}  // namespace stepladder
