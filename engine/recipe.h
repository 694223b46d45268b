// Every value that defines a run. Stages change recipes; the trainer reads one; the database keeps it as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/recipe_error.h"

namespace stepladder {

enum class Attention { explicit_scores, scaled_dot_product };
enum class MatmulPrecision { fp32, tf32, bf16 };
enum class Autocast { off, bf16 };
enum class Optimizer { adamw, fused_adamw };
enum class Compile { off, on, max };
enum class Schedule { constant, cosine };
enum class Decay { everything, matrices };  // the tensors that weight decay applies to
// The initial weights. pytorch: each layer's own default (linear layers uniform within 1/sqrt(fan-in), embeddings with
// std 1). gpt2: as published, std 0.02, residual projections scaled by (2 x layers)^-0.5, biases 0.
enum class Init { pytorch, gpt2 };

struct Recipe {
  // GPT-2 as published: pre-LayerNorm, learned positions, biases, tanh GELU. `gpt2` and larger are published whole:
  // with the head tied to the token embedding and scaled initial weights. `nano` has neither, as in a first
  // implementation.
  std::string model = "nano";
  int layers = 4;
  int heads = 4;
  int d_model = 128;
  int vocab = 0;           // 0: as the data needs (256 for bytes, 50257 for GPT-2 tokens)
  int vocab_multiple = 1;  // rows of the embedding and the head are padded to a multiple of it
  bool tied_head = false;  // the head is the token embedding itself
  Init init = Init::pytorch;
  std::string weights;  // a file to start from instead: safetensors or llm.c's .bin; empty: `init`

  std::string data;      // a .txt (bytes), nanoGPT .bin or llm.c .bin; empty: the synthetic source
  int batch = 12;        // sequences per micro-batch (B), over all processes
  int seq = 64;          // tokens per sequence (T)
  int grad_accum = 1;    // micro-batches per step
  bool overfit = false;  // trains on the first batch only: its loss must fall to zero
  std::int64_t steps = 100;
  std::int64_t warmup = -1;     // steps excluded from the timing; -1: by rule
  std::int64_t eval_every = 0;  // 0: never
  std::int64_t eval_batches = 32;
  std::int64_t sample_every = 0;  // 0: never
  int sample_tokens = 128;        // that the model writes
  std::string sample_prompt = "\n";
  std::string tokenizer;        // tokenizer.json or merges.txt; empty: bytes
  std::int64_t save_every = 0;  // steps between checkpoints; 0: none
  int keep = 2;                 // the number of newest checkpoints that are kept; 0: all

  std::string device = "auto";  // auto, cpu, cuda, mps
  int threads = 0;              // CPU threads of all processes together; 0: one per core
  int nproc = 1;                // processes that share the rows of each micro-batch
  std::uint64_t seed = 1337;

  double lr = 1e-3;  // the highest
  Schedule schedule = Schedule::constant;
  std::int64_t lr_warmup = 0;  // steps in which the learning rate climbs to `lr`
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  Decay decay = Decay::everything;
  double clip = 0;  // gradients are scaled down to this L2 norm over all; 0: never

  // Values that stages change.
  Attention attention = Attention::explicit_scores;
  MatmulPrecision matmul = MatmulPrecision::fp32;
  Autocast autocast = Autocast::off;
  Optimizer optimizer = Optimizer::adamw;
  Compile compile = Compile::off;
  std::string without_kernel;  // parts of compile-max that LibTorch replaces (kernel_parts.h): "gelu+adamw"; or empty

  std::int64_t tokens_per_step() const;
  int padded_vocab() const;  // rows of the embedding and the head
  bool operator==(const Recipe&) const = default;
};

// The published configurations, smallest first. `lr`, `batch` and `seq` are the usual ones for it.
struct ModelPreset {
  std::string_view name;
  std::string_view note;
  int layers, heads, d_model, vocab, batch, seq;
  double lr;
  bool tied_head;
  Init init;
};
const std::vector<ModelPreset>& model_presets();

// Sets shape, vocabulary, head, init, batch, seq and lr to those of the preset; throws RecipeError for an unknown name
// (with the nearest one).
void apply_preset(Recipe& recipe, std::string_view name);

// Throws RecipeError for the first value out of range. Checks numbers only; the token source checks files.
void validate(const Recipe& recipe);
void validate_each_value(const Recipe& recipe);  // not whether the values fit each other

// The learning rate of a step, which counts from 1: a linear climb, then constant, or a cosine that would reach a tenth
// of `lr` one step after the last (Radford et al. 2018; Brown et al. 2020, appendix B).
double learning_rate(const Recipe& recipe, std::int64_t step);

// Parameters of the model (a tied head counts once, padding counts); `vocab` must be known.
std::int64_t parameter_count(const Recipe& recipe);

// "fp32", "tf32" or "bf16": the precision to which the inputs of matrix products are rounded.
std::string precision_name(const Recipe& recipe);

// Lists all values as name and text, in the order of the struct.
std::vector<std::pair<std::string, std::string>> describe(const Recipe& recipe);

// "autocast off -> bf16, batch 2 -> 3"; empty if they are equal.
std::string difference(const Recipe& before, const Recipe& after);

// Sets one value by its name in `describe` ("batch", "init"), as text; "model" sets all values of the preset,
// and the data "synthetic" is the synthetic source. Throws RecipeError for an unknown name or a value that it cannot
// have.
void set_value(Recipe& recipe, std::string_view name, const std::string& value);

std::string to_json(const Recipe& recipe);
Recipe recipe_from_json(std::string_view json);  // unknown members are ignored, absent ones keep their default

}  // namespace stepladder
