// Text to tokens and back, as GPT-2 does it: byte-level byte-pair encoding (Radford et al. 2019, section 2.2; Sennrich
// et al. 2016). Holds no torch.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/files/data_error.h"

namespace stepladder {

// Never changes, so copies are cheap and threads may share one.
class Tokenizer {
 public:
  // One token a byte: for models trained on a text file.
  static Tokenizer bytes();

  // Hugging Face's tokenizer.json; merges.txt or vocab.json with the other beside it (also as OpenAI called them,
  // vocab.bpe and encoder.json); or a folder that holds one of these. Throws DataError for files that cannot be read
  // and for other kinds of tokenizers, which would give wrong tokens.
  static Tokenizer open(const std::filesystem::path& path);

  // Added tokens ("<|endoftext|>") are recognised in the text. Bytes that aren't UTF-8 become tokens like all others.
  // Throws DataError if the vocabulary has no token for a byte; GPT-2's always has one.
  std::vector<int> encode(std::string_view text) const;

  // The bytes of the tokens. A token may end within a character, so text that is shown piece by piece may have to wait
  // for the next token. A number that isn't a token (a padded vocabulary has some) becomes U+FFFD.
  std::string decode(std::span<const int> tokens) const;

  int vocab() const;                       // one more than the largest token
  std::optional<int> end_of_text() const;  // "<|endoftext|>", if it exists

 private:
  struct Content;
  explicit Tokenizer(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

}  // namespace stepladder
