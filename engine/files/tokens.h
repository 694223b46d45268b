// Sources of tokens: a text file as bytes, GPT-2 tokens in nanoGPT's or llm.c's .bin, or a synthetic source of
// known entropy. Holds no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/files/data_error.h"

namespace stepladder {

enum class Split { train, validation };

// B sequences of T tokens and, for each, the token that follows; both row-major (B, T).
struct Batch {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> targets;
};

class TokenSource {
 public:
  // Reads a .bin by its content (llm.c: magic 20240520; else nanoGPT's bare uint16), anything else as text, byte by
  // byte. An empty path gives the synthetic source. The last tenth is validation. Throws DataError, also if a split
  // doesn't hold a sequence of `seq` + 1 tokens.
  static TokenSource open(const std::filesystem::path& file, int seq, std::uint64_t seed);

  // The batch_size sequences from index * batch_size on. Each depends only on the seed, not on earlier reads or on the
  // grouping into batches, so that one large batch equals several small ones: training offsets are drawn at random
  // (with replacement, as nanoGPT does), validation windows are spread evenly over the split. Reads the file at each
  // call (none of it is kept in memory). Throws DataError if it was truncated or a token is out of range.
  Batch batch(Split split, std::int64_t index, int batch_size) const;

  // The number of batches after which validation windows repeat.
  std::int64_t validation_batches(int batch_size) const;

  int vocab_needed() const;                // 256 for bytes, 50257 for GPT-2 tokens (50304 if a file uses the padding)
  std::int64_t tokens() const;             // both splits together; 0 for the synthetic source, which is endless
  double entropy() const;                  // nats per token, the loss that no model can beat; `missing` for files
  const std::string& description() const;  // "1,115,394 bytes of tinyshakespeare.txt"

  // The synthetic source: from token t the next is (5 t + 17) mod 256 with probability 3/4, else any of 256, evenly.
 private:
  struct Content;
  explicit TokenSource(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;  // never changes, so copies and threads may share it
};

}  // namespace stepladder
