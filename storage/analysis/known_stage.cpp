#include "storage/analysis/known_stage.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace stepladder {
namespace {

struct Sign {
  std::string_view words;  // beginnings of words in lower case; a "+" joins what must be there both
  std::string_view stage;
};

// What is more special comes first.
constexpr std::array signs{
    Sign{"overfit", "overfit"},
    Sign{"max autotune", "compile-max"},
    Sign{"torch compile", "compile"},
    Sign{"flash", "flash-attention"},
    Sign{"scaled dot product", "flash-attention"},
    Sign{"sdpa", "flash-attention"},
    Sign{"fused+optimizer", "fused-adamw"},
    Sign{"fused+adam", "fused-adamw"},
    Sign{"weight shar", "weight-tying"},
    Sign{"weight tying", "weight-tying"},
    Sign{"tied+head", "weight-tying"},
    Sign{"gradient accum", "grad-accumulation"},
    Sign{"grad accum", "grad-accumulation"},
    Sign{"weight decay+group", "decay-groups"},
    Sign{"cosin", "cosine-lr"},
    Sign{"hyper param+adam", "gpt3-adamw"},
    Sign{"clipping", "gpt3-adamw"},
    Sign{"nice numbers", "padded-vocab"},
    Sign{"vocab", "padded-vocab"},
    Sign{"residual", "init-scaling"},
    Sign{"initialization", "init-scaling"},
    Sign{"ddp", "ddp"},
    Sign{"data parallel", "ddp"},
    Sign{"bf16", "bf16"},
    Sign{"bfloat16", "bf16"},
    Sign{"autocast", "bf16"},
    Sign{"precision+tf32", "tf32"},
    Sign{"matmul precision", "tf32"},
    Sign{"compile", "compile"},
    Sign{"baseline", "baseline"},
};

std::string in_plain_words(std::string_view text) {
  std::string words = " ";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      words += static_cast<char>(std::tolower(byte));
    } else if (words.back() != ' ') {
      words += ' ';
    }
  }
  return words;
}

bool shows(const std::string& words, std::string_view sign) {
  while (!sign.empty()) {
    const std::size_t end = std::min(sign.find('+'), sign.size());
    if (words.find(" " + std::string(sign.substr(0, end))) == std::string::npos) return false;
    sign.remove_prefix(std::min(end + 1, sign.size()));
  }
  return true;
}

}  // namespace

std::string known_stage(const Run& run) {
  const auto is_id = [&](const Sign& sign) { return sign.stage == run.stage; };
  if (run.source == "launched" || std::any_of(signs.begin(), signs.end(), is_id)) return run.stage;
  for (const std::string* text : {&run.changed, &run.title, &run.stage}) {
    const std::string words = in_plain_words(*text);
    // What is timed before a change ("calculating the time at tf32 precision") is not the change.
    if (words.starts_with(" calculating") || words.starts_with(" changing the baseline")) return "";
    for (const Sign& sign : signs) {
      if (shows(words, sign.words)) return std::string(sign.stage);
    }
  }
  return "";
}

}  // namespace stepladder
