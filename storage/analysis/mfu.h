// Model and hardware FLOP utilisation, by conventions that are always named: they differ by a sixth for the same run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

// FLOPs per token, forward and backward, for N parameters, L layers, width d and sequences of T tokens.
enum class MfuConvention {
  six_n,          // 6 N, all parameters: the lowest
  llm_c,          // 6 N + 6 L d T, N with the vocabulary padded to a multiple of 128 (llm.c, gpt2_estimate_mfu)
  nano_gpt,       // 6 N + 12 L d T, N without position embeddings (nanoGPT, estimate_mfu)
  palm,           // 6 N + 12 L d T, all parameters (PaLM, Chowdhery et al. 2022, appendix B; MosaicML's llm-foundry)
  mosaic_tables,  // 6 N + 4 L d T (MosaicML's published tables of 2023: each attention product counted once)
};
inline constexpr auto all_conventions = enumerators<MfuConvention>();
std::string_view to_string(MfuConvention convention);   // "6N", "llm.c", "nanoGPT", "PaLM/Mosaic", "Mosaic tables"
std::string_view formula_of(MfuConvention convention);  // in words of the shape below

struct ModelShape {
  std::int64_t params = 0;   // N: all of them, position embeddings included, a tied head once
  std::int64_t layers = 0;   // L; 0: not known
  std::int64_t d_model = 0;  // d
  std::int64_t seq_len = 0;  // T
  std::int64_t vocab = 0;    // 0: N stays as it is
};

// missing if the shape lacks a value that the convention needs.
double flops_per_token(MfuConvention convention, const ModelShape& shape);

// The hardware's FLOPs: the same with the second forward pass of activation recomputation. Mosaic's tables define them
// as 8 N + 6 L d T; for the others they are 4/3 of the model's.
double flops_per_token_recomputed(MfuConvention convention, const ModelShape& shape);

double utilisation(double flops_per_token, double tokens_per_s, double total_peak_tflops);

// The four figures of MosaicML's tables; a star excludes attention.
struct MosaicFigures {
  double mfu_star = missing;
  double mfu = missing;
  double hfu_star = missing;
  double hfu = missing;
};

struct PublishedRow {
  std::string model;
  ModelShape shape;
  int gpus = 0;
  std::string gpu;
  double samples_per_s = missing;
  double tokens_per_s = missing;
  bool recomputed = false;
  MosaicFigures published;
};

// assets/mosaic-mfu.csv. Throws StorageError, with the file's name and the line.
std::vector<PublishedRow> read_published(const std::filesystem::path& file);

bool is_published_header(std::string_view line);
// The rows of tables in Markdown with MosaicML's columns. Layers and width aren't in them: they are those of the first
// of `known` that has the model's name, else unknown. Rows without numbers are skipped.
std::vector<PublishedRow> published_rows(std::string_view markdown, const std::vector<PublishedRow>& known);
// The tables' lines whose rows aren't in `known`, each table with its header.
std::string unknown_rows(std::string_view markdown, const std::vector<PublishedRow>& known);

// The rows that ship with the program, and those of imported tables that aren't among them.
std::vector<PublishedRow> with_imported(std::vector<PublishedRow> shipped, std::string_view markdown);

// The project's setting with such tables, which were imported.
inline constexpr const char* published_setting = "published_mfu";

// Recomputes the figures from tokens per second, which are published with more digits than samples; A100: 312 TFLOP/s,
// H100: 989.4. Missing for other GPUs.
MosaicFigures recompute(const PublishedRow& row);

// The reason why a recomputed figure differs from the published one in four decimals; empty if all four agree.
std::string disagreement(const MosaicFigures& published, const MosaicFigures& computed);

}  // namespace stepladder
