// Each function knows one program's form by its signs and their order, since its numbers have no names.
#include "storage/importers/logs/lines/fixed_forms.h"

#include <algorithm>
#include <cmath>

#include "storage/importers/text.h"

namespace stepladder {

// "250 val 3.2841": the three words that build-nanogpt writes into its log.txt.
bool read_three_words(std::string_view line, StepLine& found) {
  TextCursor text(trimmed(line));
  std::int64_t step = 0;
  double value = 0;
  if (text.rest().starts_with('-') || !text.take(step) || !text.take(" ")) return false;
  const bool trains = text.take("train ");
  if ((!trains && !text.take("val ")) || !text.take(value) || !text.rest().empty()) return false;
  found.step = step;
  (trains ? found.loss : found.val_loss) = value;
  return true;
}

// "[2,  4000] loss: 1.853": epoch and batch, as PyTorch's tutorial prints them.
bool read_epoch_and_batch(std::string_view line, StepLine& found) {
  TextCursor text(trimmed(line));
  std::int64_t epoch = 0, batch = 0;
  if (!text.take("[") || !text.take(epoch) || !text.take(",")) return false;
  text.skip_spaces();
  if (!text.take(batch) || !text.take("]") || text.rest().size() < 6 || epoch < 0 || batch < 0) return false;
  if (!trimmed(text.rest()).starts_with("loss")) return false;
  found.epoch = static_cast<double>(epoch);
  found.whole_epoch = true;
  found.step = batch;
  return true;
}

// "[10 | 25.30] loss=3.55": step and seconds since the start, as gpt-2-simple prints them.
bool read_step_and_clock(std::string_view line, StepLine& found) {
  TextCursor text(trimmed(line));
  std::int64_t step = 0;
  double seconds = 0;
  if (!text.take("[") || !text.take(step) || !text.take(" | ") || !text.take(seconds) || !text.take("]") || step < 0)
    return false;
  found.step = step;
  found.elapsed = seconds;
  found.elapsed_unit = TimeUnit::s;
  return true;
}

// "Progress on:train 1.20kit/10.0kit rate:1.7it/s", "Progress on: 50.0/600.0": a bar that was logged, not drawn.
bool read_logged_bar(std::string_view line, StepLine& found) {
  constexpr std::string_view title = "Progress on:";
  const std::size_t at = line.find(title);
  const std::size_t begin = at == std::string_view::npos ? at : line.find(' ', at + title.size());
  if (begin == std::string_view::npos) return false;
  TextCursor text(line.substr(begin + 1));
  double count = 0, total = 0;
  const std::string_view printed = text.rest();
  if (!text.take(count) || !(count >= 0) || count > 1e12) return false;
  const std::string_view digits = printed.substr(0, printed.size() - text.rest().size());
  const double scale = text.take("k") ? 1e3 : text.take("M") ? 1e6 : 1;
  const bool has_unit = text.take("it");
  if (!text.take("/") || !text.take(total) || (!has_unit && scale > 1)) return false;
  found.step = std::llround(count * scale);
  // "2.90k" is a multiple of 10.
  const std::size_t point = digits.find('.');
  if (scale > 1)
    found.rounded_step = scale / std::pow(10, point == std::string_view::npos ? 0 : digits.size() - point - 1);
  const bool is_exact = scale == 1 && (text.rest().starts_with("it") || text.rest().starts_with(' '));
  if (is_exact && total >= count && total < 1e12) found.total = std::llround(total);
  return true;
}

// "1epoch:train:51-100batch: loss=7.6": epoch and batches, whose means follow. Behind "valid" they are of an
// evaluation.
bool read_epoch_and_batches(std::string_view line, StepLine& found) {
  for (const std::string_view part : {"epoch:train:", "epoch:valid:"}) {
    const std::size_t at = line.find(part);
    if (at == std::string_view::npos) continue;
    std::size_t begin = at;
    while (begin > 0 && is_digit(line[begin - 1])) --begin;
    TextCursor text(line.substr(begin));
    std::int64_t epoch = 0, first = 0, last = 0;
    if (!text.take(epoch) || !text.take(part) || !text.take(first) || !text.take("-") || !text.take(last) ||
        !text.take("batch:"))
      return false;
    found.epoch = static_cast<double>(epoch);
    found.whole_epoch = true;
    found.step = last;
    return true;
  }
  return false;
}

// The process that mpirun's "[1,3]<stdout>:" names; -1 if the line has no such prefix.
std::int64_t rank_of_mpirun(std::string_view line) {
  TextCursor text(line);
  std::int64_t rank = -1;
  return text.take("[1,") && text.take(rank) && text.take("]<std") && rank < largest_rank ? rank : -1;
}

}  // namespace stepladder
