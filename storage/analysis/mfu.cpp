// FLOPs per token by each convention, and MosaicML's published tables recomputed as a check of them. A figure whose
// shape is unknown is `missing`, never the sum without that part.
#include "storage/analysis/mfu.h"

#include <cmath>
#include <type_traits>

#include "storage/csv.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr double a100_tflops = 312;
constexpr std::string_view published_columns =
    "model,layers,d_model,seq_len,gpus,gpu,params,samples_per_s,tokens_per_s,recompute,mfu_star,mfu,hfu_star,hfu";

double attention(const ModelShape& shape) {  // L d T
  if (shape.layers <= 0 || shape.d_model <= 0 || shape.seq_len <= 0) return missing;
  return static_cast<double>(shape.layers) * static_cast<double>(shape.d_model) * static_cast<double>(shape.seq_len);
}

// A sum that stays `missing`, not just NaN, if a part is.
double sum(double n_part, double attention_part) {
  return is_missing(attention_part) ? missing : n_part + attention_part;
}

double scaled(double factor, double value) {
  return is_missing(value) ? missing : factor * value;
}

}  // namespace

std::string_view to_string(MfuConvention convention) {
  switch (convention) {
    case MfuConvention::llm_c:
      return "llm.c";
    case MfuConvention::nano_gpt:
      return "nanoGPT";
    case MfuConvention::palm:
      return "PaLM/Mosaic";
    case MfuConvention::mosaic_tables:
      return "Mosaic tables";
    case MfuConvention::six_n:
      break;
  }
  return "6N";
}

std::string_view formula_of(MfuConvention convention) {
  switch (convention) {
    case MfuConvention::llm_c:
      return "6 N + 6 L d T, N with the vocabulary padded to 128";
    case MfuConvention::nano_gpt:
      return "6 N + 12 L d T, N without position embeddings";
    case MfuConvention::palm:
      return "6 N + 12 L d T";
    case MfuConvention::mosaic_tables:
      return "6 N + 4 L d T";
    case MfuConvention::six_n:
      break;
  }
  return "6 N";
}

double flops_per_token(MfuConvention convention, const ModelShape& shape) {
  if (shape.params <= 0) return missing;
  const auto n = static_cast<double>(shape.params);
  const auto d = static_cast<double>(shape.d_model);
  const double ldt = attention(shape);
  switch (convention) {
    case MfuConvention::llm_c: {
      const std::int64_t padding = (128 - shape.vocab % 128) % 128;
      return sum(6 * (n + static_cast<double>(padding) * d), scaled(6, ldt));
    }
    case MfuConvention::nano_gpt:
      return sum(6 * (n - static_cast<double>(shape.seq_len) * d), scaled(12, ldt));
    case MfuConvention::palm:
      return sum(6 * n, scaled(12, ldt));
    case MfuConvention::mosaic_tables:
      return sum(6 * n, scaled(4, ldt));
    case MfuConvention::six_n:
      break;
  }
  return 6 * n;
}

double flops_per_token_recomputed(MfuConvention convention, const ModelShape& shape) {
  if (convention == MfuConvention::mosaic_tables) {
    if (shape.params <= 0) return missing;
    return sum(8 * static_cast<double>(shape.params), scaled(6, attention(shape)));
  }
  return scaled(4.0 / 3.0, flops_per_token(convention, shape));
}

double utilisation(double flops_per_token, double tokens_per_s, double total_peak_tflops) {
  if (is_missing(flops_per_token) || is_missing(tokens_per_s) || is_missing(total_peak_tflops)) return missing;
  return flops_per_token * tokens_per_s / (total_peak_tflops * 1e12);
}

std::vector<PublishedRow> read_published(const std::filesystem::path& file) {
  CsvFile table(file, published_columns);
  std::vector<PublishedRow> rows;
  while (table.next()) {
    PublishedRow row;
    const auto read = [&](std::size_t column, auto& value) {
      value = table.number<std::remove_reference_t<decltype(value)>>(column);
    };
    row.model = table.text(0);
    read(1, row.shape.layers);
    read(2, row.shape.d_model);
    read(3, row.shape.seq_len);
    read(4, row.gpus);
    row.gpu = table.text(5);
    read(6, row.shape.params);
    read(7, row.samples_per_s);
    read(8, row.tokens_per_s);
    row.recomputed = table.number<int>(9) != 0;
    read(10, row.published.mfu_star);
    read(11, row.published.mfu);
    read(12, row.published.hfu_star);
    read(13, row.published.hfu);
    rows.push_back(std::move(row));
  }
  return rows;
}

MosaicFigures recompute(const PublishedRow& row) {
  const double peak_tflops = row.gpus * a100_tflops;
  const auto share = [&](double flops) { return utilisation(flops, row.tokens_per_s, peak_tflops); };
  MosaicFigures figures;
  figures.mfu_star = share(flops_per_token(MfuConvention::six_n, row.shape));
  figures.mfu = share(flops_per_token(MfuConvention::mosaic_tables, row.shape));
  figures.hfu_star =
      row.recomputed ? share(flops_per_token_recomputed(MfuConvention::six_n, row.shape)) : figures.mfu_star;
  figures.hfu =
      row.recomputed ? share(flops_per_token_recomputed(MfuConvention::mosaic_tables, row.shape)) : figures.mfu;
  return figures;
}

std::string disagreement(const MosaicFigures& published, const MosaicFigures& computed) {
  std::string text;
  const auto compare = [&](const char* name, double said, double found) {
    if (std::lround(said * 1e4) == std::lround(found * 1e4)) return;
    text += fmt::format("{}{} is published as {:.4f} but recomputes to {:.6f}", text.empty() ? "" : "; ", name, said,
                        found);
  };
  compare("mfu_star", published.mfu_star, computed.mfu_star);
  compare("mfu", published.mfu, computed.mfu);
  compare("hfu_star", published.hfu_star, computed.hfu_star);
  compare("hfu", published.hfu, computed.hfu);
  return text;
}

}  // namespace stepladder
