// Opens and draws from the sources of tokens: text, llm.c's and nanoGPT's .bin, the synthetic source. Each sequence has
// its own random stream from (seed, split, index), so resumed and split batches read the same data; changing the draws
// changes every recorded loss curve.
#include "engine/files/tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/files/files.h"
#include "storage/records.h"

namespace stepladder {
namespace {

constexpr int byte_vocab = 256;
constexpr int gpt2_vocab = 50257;
constexpr int padded_gpt2_vocab = 50304;  // the next multiple of 128, which suits GPUs better

// llm.c's token file: 256 int32 (magic, version, number of tokens, zeros), then the tokens as uint16.
constexpr std::int32_t token_magic = 20240520;
constexpr std::int64_t llmc_header_words = 256;
constexpr std::int64_t token_header_bytes = llmc_header_words * 4;
// Other kinds of llm.c's files: checkpoints, tokenizers, evaluations, Llama tokens.
constexpr std::array<std::int32_t, 6> other_llmc_magics = {20240326, 20240801, 20240522, 20240327, 20240527, 20240328};

// Tokens checked when a file is opened (one llm.c shard). Later ones are checked as they are drawn, so that a 17 GB
// file opens at once.
constexpr std::int64_t scanned_tokens = 100'000'000;

constexpr double synthetic_rule_probability = 0.75;

// Sebastiano Vigna's splitmix64: small, fast, and good with any seed.
class Random {
 public:
  // Streams of different (seed, split, index) are independent.
  Random(std::uint64_t seed, Split split, std::int64_t index) : state_(seed) {
    state_ = next() + static_cast<std::uint64_t>(split);
    state_ = next() + static_cast<std::uint64_t>(index);
  }
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 .. n-1; the remainder's bias is below 2^-24 for any file that fits on a disk.
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }

 private:
  std::uint64_t state_;
};

std::string with_commas(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool group_begins = i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0;
    if (group_begins) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

struct TokenSource::Content {
  std::unique_ptr<InputFile> file;  // none: the synthetic source
  int seq = 0;
  std::uint64_t seed = 0;
  std::int64_t first_byte = 0;   // of the first token
  std::int64_t token_bytes = 1;  // 1 or 2
  std::int64_t tokens = 0;
  int vocab_needed = byte_vocab;
  std::string description;

  std::int64_t train_tokens() const { return tokens / 10 * 9 + tokens % 10 * 9 / 10; }
  std::int64_t validation_tokens() const { return tokens - train_tokens(); }
  // Windows of `seq` inputs side by side; the last one's last target is the split's last token.
  std::int64_t validation_windows() const { return (validation_tokens() - 1) / seq; }

  // The start of the validation window of that number. Windows are visited in strides of about the golden ratio of the
  // split, without a common divisor, so that the first ones are spread evenly for any count, and all are used before
  // one repeats.
  std::int64_t validation_start(std::int64_t number) const {
    const std::int64_t windows = validation_windows();
    auto stride =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(0.6180339887498949 * static_cast<double>(windows)));
    while (std::gcd(stride, windows) != 1) ++stride;
    // number % windows * stride is far below 2^63 for any file.
    return train_tokens() + number % windows * stride % windows * seq;
  }

  // `count` tokens from `start` on.
  void read_tokens(std::int64_t start, std::int64_t count, std::vector<std::uint16_t>& tokens_out) const {
    tokens_out.resize(static_cast<std::size_t>(count));
    if (token_bytes == 2) {  // little-endian, as every machine that LibTorch runs on
      file->read(first_byte + 2 * start, tokens_out.data(), 2 * count);
      return;
    }
    thread_local std::vector<std::uint8_t> bytes;
    bytes.resize(static_cast<std::size_t>(count));
    file->read(first_byte + start, bytes.data(), count);
    std::copy(bytes.begin(), bytes.end(), tokens_out.begin());
  }

  void open_text();
  void open_llmc();
  void open_nanogpt();
  void find_vocab();
  void require_enough(const char* unit) const;
};

void TokenSource::Content::open_text() {
  tokens = file->size_bytes();
  std::vector<std::uint8_t> head(static_cast<std::size_t>(std::min<std::int64_t>(tokens, 1 << 20)));
  file->read(0, head.data(), static_cast<std::int64_t>(head.size()));
  std::int64_t control_characters = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == 0) {
      throw DataError(file->name() + " is not text: byte " + with_commas(static_cast<std::int64_t>(i)) +
                      " is zero (token files end in .bin)");
    }
    const bool layout = head[i] >= '\b' && head[i] <= '\r';  // tab, line feed and the like
    if ((head[i] < 32 && !layout && head[i] != 27) || head[i] == 127) ++control_characters;
  }
  if (control_characters * 20 > static_cast<std::int64_t>(head.size())) {
    throw DataError(file->name() + " is not text: " + with_commas(control_characters) + " of its first " +
                    with_commas(static_cast<std::int64_t>(head.size())) + " bytes are control characters");
  }
  description = with_commas(tokens) + " bytes of " + std::filesystem::path(file->name()).filename().string();
  require_enough("bytes");
}

void TokenSource::Content::open_llmc() {
  std::array<std::int32_t, llmc_header_words> header;
  if (file->size_bytes() < token_header_bytes) {
    throw DataError(file->name() + " is cut short: llm.c's header alone has 1,024 bytes, the file " +
                    with_commas(file->size_bytes()));
  }
  file->read(0, header.data(), token_header_bytes);
  if (header[1] != 1) {
    throw DataError(file->name() + " is an llm.c token file of version " + std::to_string(header[1]) +
                    "; only version 1 (GPT-2 tokens) can be read");
  }
  first_byte = token_header_bytes;
  token_bytes = 2;
  tokens = header[2];
  const std::int64_t held_bytes = file->size_bytes() - token_header_bytes;
  if (tokens < 0 || held_bytes != 2 * tokens) {
    throw DataError(file->name() + (held_bytes < 2 * tokens ? " is cut short" : " does not fit its header") +
                    ": the header says " + with_commas(tokens) + " tokens, the file holds " +
                    with_commas(held_bytes / 2));
  }
}

void TokenSource::Content::open_nanogpt() {
  if (file->size_bytes() % 2 != 0) {
    throw DataError(file->name() + " has an odd size (" + with_commas(file->size_bytes()) +
                    " bytes), but its tokens have two bytes each: it is cut short or isn't a token file");
  }
  token_bytes = 2;
  tokens = file->size_bytes() / 2;
}

void TokenSource::Content::find_vocab() {
  std::vector<std::uint16_t> chunk;
  std::uint16_t largest = 0;
  const std::int64_t last = std::min(tokens, scanned_tokens);
  for (std::int64_t start = 0; start < last; start += 1 << 20) {
    read_tokens(start, std::min<std::int64_t>(1 << 20, last - start), chunk);
    largest = std::max(largest, *std::ranges::max_element(chunk));
  }
  if (largest >= padded_gpt2_vocab) {
    throw DataError(file->name() + " contains token " + with_commas(largest) + ", but GPT-2's are below " +
                    with_commas(padded_gpt2_vocab) + ": it has another vocabulary or isn't a token file");
  }
  vocab_needed = largest < gpt2_vocab ? gpt2_vocab : padded_gpt2_vocab;
}

void TokenSource::Content::require_enough(const char* unit) const {
  const std::int64_t needed = std::int64_t{10} * seq + 1;  // a tenth of it, rounded up, is seq + 1
  if (tokens >= needed) return;
  throw DataError(file->name() + " is too short: it holds " + with_commas(tokens) + " " + unit + ", but sequences of " +
                  with_commas(seq) + " need at least " + with_commas(needed) + " (the last tenth is for validation)");
}

TokenSource TokenSource::open(const std::filesystem::path& path, int seq, std::uint64_t seed) {
  auto content = std::make_shared<Content>();
  content->seq = seq;
  content->seed = seed;
  if (path.empty()) {
    content->description = "a synthetic source of 256 tokens";
    return TokenSource(content);
  }
  content->file = std::make_unique<InputFile>(path);
  const InputFile& file = *content->file;
  if (file.size_bytes() == 0) throw DataError(file.name() + " is empty");
  if (path.extension() != ".bin") {
    content->open_text();
    return TokenSource(content);
  }

  std::array<std::int32_t, llmc_header_words> head{};
  file.read(0, head.data(), std::min(file.size_bytes(), token_header_bytes));
  if (file.size_bytes() >= 4 && head[0] == token_magic) {
    content->open_llmc();
  } else {
    // A nanoGPT file has no header, so every file of an unknown kind counts as one.
    const bool other_magic = std::ranges::find(other_llmc_magics, head[0]) != other_llmc_magics.end();
    const bool header_shape = file.size_bytes() >= token_header_bytes &&
                              std::all_of(head.begin() + 3, head.end(), [](std::int32_t word) { return word == 0; });
    const std::int64_t size_by_header = token_header_bytes + std::int64_t{2} * head[2];
    const bool header_fits = std::abs(size_by_header - file.size_bytes()) <= 1024 + file.size_bytes() / 10;
    if (other_magic || (header_shape && header_fits)) {
      throw DataError(file.name() + " looks like an llm.c file, but its magic is " + std::to_string(head[0]) +
                      ", expected " + std::to_string(token_magic));
    }
    content->open_nanogpt();
  }
  content->require_enough("tokens");
  content->find_vocab();
  content->description = with_commas(content->tokens) + " GPT-2 tokens of " + path.filename().string();
  return TokenSource(content);
}

Batch TokenSource::batch(Split split, std::int64_t index, int batch_size) const {
  const Content& content = *content_;
  const std::int64_t seq = content.seq;
  Batch batch;
  batch.inputs.reserve(static_cast<std::size_t>(batch_size * seq));
  batch.targets.reserve(static_cast<std::size_t>(batch_size * seq));
  std::vector<std::uint16_t> window;  // seq + 1 tokens
  for (std::int64_t row = 0; row < batch_size; ++row) {
    const std::int64_t sequence = index * batch_size + row;
    Random random(content.seed, split, sequence);
    if (!content.file) {
      window.resize(static_cast<std::size_t>(seq + 1));
      std::int64_t token = random.below(byte_vocab);
      for (std::uint16_t& place : window) {
        place = static_cast<std::uint16_t>(token);
        const bool by_rule = static_cast<double>(random.next() >> 11) * 0x1p-53 < synthetic_rule_probability;
        token = by_rule ? (5 * token + 17) % byte_vocab : random.below(byte_vocab);
      }
    } else {
      const std::int64_t start =
          split == Split::train ? random.below(content.train_tokens() - seq) : content.validation_start(sequence);
      content.read_tokens(start, seq + 1, window);
      const auto outside =
          std::ranges::find_if(window, [&](std::uint16_t token) { return token >= content.vocab_needed; });
      if (outside != window.end()) {
        throw DataError(content.file->name() + " contains token " + with_commas(*outside) + " at position " +
                        with_commas(start + (outside - window.begin())) + ", but earlier ones are below " +
                        with_commas(content.vocab_needed));
      }
    }
    batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
    batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
  }
  return batch;
}

std::int64_t TokenSource::validation_batches(int batch_size) const {
  if (!content_->file) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(1, content_->validation_windows() / batch_size);
}

int TokenSource::vocab_needed() const {
  return content_->vocab_needed;
}

std::int64_t TokenSource::tokens() const {
  return content_->tokens;
}

double TokenSource::entropy() const {
  if (content_->file) return missing;
  // H = -p ln p - 255 q ln q, with p for the token that the rule names and q for each of the others.
  const double other = (1 - synthetic_rule_probability) / byte_vocab;
  const double named = synthetic_rule_probability + other;
  return -named * std::log(named) - (byte_vocab - 1) * other * std::log(other);
}

const std::string& TokenSource::description() const {
  return content_->description;
}

}  // namespace stepladder
