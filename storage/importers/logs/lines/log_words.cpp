// Classifies lines without a step, and names the family of programs that printed one with a step. may_say_step looks at
// every line of every log, so it reads each byte once; family_of tries the most specific families first.
#include "storage/importers/logs/lines/log_words.h"

#include <algorithm>
#include <array>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_heading = 160;

// One of these is in each line of a step.
constexpr std::string_view step_words[] = {"loss",  "cost", "step",    "s/it", "iter", "it/s",
                                           "epoch", "el:",  "entropy", "rl:",  "batch"};
constexpr std::array<bool, 256> step_initials = [] {  // by byte
  std::array<bool, 256> initials{};
  for (const std::string_view word : step_words)
    for (const char c : {word.front(), static_cast<char>(word.front() - 32)})
      initials[static_cast<unsigned char>(c)] = true;
  return initials;
}();

}  // namespace

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

std::string shortened(std::string_view text, std::size_t size) {
  if (text.size() <= size) return std::string(text);
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;  // whole characters
  return std::string(text.substr(0, size)) + "...";
}

bool may_say_step(std::string_view line) {
  if (line.size() < 5) return false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!step_initials[static_cast<unsigned char>(line[at])]) continue;
    for (const std::string_view word : step_words)
      if (equal_in_lower(line.substr(at, word.size()), word)) return true;
  }
  return line.size() < 48 && is_digit(trimmed(line).empty() ? ' ' : trimmed(line).front());
}

bool is_warning(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.size() > 8 && (text[0] == 'W' || text[0] == 'E') && is_digit(text[1]) && is_digit(text[2]) &&
      is_digit(text[3]) && is_digit(text[4]) && text[5] == ' ')
    return true;
  return contains_word(text, "warning:") || contains_word(text, "warnings.warn");
}

std::string_view heading_of(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.size() < 3 || text.size() > longest_heading) return {};
  const bool sharp = text[0] == '#';
  const bool framed =
      text.starts_with("===") || text.starts_with("---") || text.starts_with("***") || text.starts_with(">>>");
  if (!sharp && !framed) return {};
  if (sharp && !(text.find_first_not_of('#') != std::string_view::npos && text[text.find_first_not_of('#')] == ' '))
    return {};
  const std::string_view words = trimmed(text, "#=*->~ \t");
  if (words.size() < 2 || std::ranges::none_of(words, is_letter)) return {};
  for (const std::string_view start : {"Running ", "http", "end of", "arguments"})
    if (words.starts_with(start)) return {};
  return words;
}

std::optional<Item> item_of(std::string_view line) {
  const std::size_t indent = line.find_first_not_of(" \t");
  if (indent == std::string_view::npos) return std::nullopt;
  std::size_t at = indent;
  while (at < line.size() && is_digit(line[at])) ++at;
  if (at == indent || at - indent > 2 || at + 2 >= line.size() || (line[at] != '.' && line[at] != ')') ||
      line[at + 1] != ' ')
    return std::nullopt;
  const std::string_view text = trimmed(line.substr(at + 1));
  if (text.empty() || std::ranges::none_of(text, is_letter)) return std::nullopt;
  return Item{indent, text};
}

bool is_code_line(std::string_view line) {
  const std::string_view text = trimmed(line);
  for (const std::string_view start : {"import ", "from ", "def ", "class ", "return ", "@", "if __name__", "#include"})
    if (text.starts_with(start)) return true;
  return false;
}

bool speaks_of_resuming(std::string_view line) {
  return contains_word(line, "resum") || contains_word(line, "restor") || contains_word(line, "checkpoint") ||
         contains_word(line, "continu");
}

bool speaks_of_the_end(std::string_view line) {
  if (line.find("raining") == std::string_view::npos || contains_word(line, "epoch")) return false;
  return contains_word(line, "training complete") || contains_word(line, "training finished") ||
         contains_word(line, "finished training") || contains_word(line, "training done") ||
         contains_word(line, "total training time");
}

std::string_view family_of(std::string_view text, const StepLine& line) {
  const auto has = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
  const std::string_view start = trimmed(text);
  if (start.starts_with("s:") && (has("trl:") || has("tel:"))) return "llm.c";
  if (start.starts_with("step:") && has("train_time:")) return "modded-nanogpt";
  if (has("tps:") && (has("memory:") || has("tflops:"))) return "torchtitan";
  if (has("lm_loss")) return has("consumed_tokens") ? "nanotron" : "gpt-neox";
  if (has("elapsed time per iteration") || has("lm loss")) return "megatron";
  if (has("Train loss/train") || has("[batch=")) return "composer";
  if (has("train/CrossEntropyLoss")) return "olmo";
  if (start.starts_with("completed step:")) return "maxtext";
  if (has("| iter time:")) return "litgpt";
  if (start.starts_with("iter ") && has("time") && has("mfu")) return "nanogpt";
  if (start.starts_with("step ") && has("train loss") && has("val loss")) return "nanogpt";
  if (line.keras) return has("] data=") ? "llama.cpp" : "keras";
  if (line.bar) return has("v_num") ? "lightning" : "tqdm";
  if (line.record && (has("'loss'") || has("'eval_loss'"))) return "huggingface";
  if (has("num_updates")) return "fairseq";
  if (line.record && start.starts_with("{")) return "json-lines";
  if (has("MFU") || has("z)") || (has("(") && has("tok/s)"))) return "llm.c";
  if (has("norm") && has("dt:") && has("tok/sec")) return "build-nanogpt";
  if (has("Train Epoch:")) return "pytorch-examples";
  if (start.find(' ') != std::string_view::npos && start.size() < 48 && is_digit(start.front()) && !has("|"))
    return "build-nanogpt";
  if (std::ranges::count(text, '=') > 1) return "key=value";
  return "plain";
}

}  // namespace stepladder
