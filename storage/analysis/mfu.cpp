#include "storage/analysis/mfu.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "storage/errors.h"

namespace stepladder {
namespace {

constexpr double a100_tflops = 312;
constexpr std::string_view columns =
    "model,layers,d_model,seq_len,gpus,gpu,params,samples_per_s,tokens_per_s,recompute,mfu_star,mfu,hfu_star,hfu";

double attention(const ModelShape& shape) {  // L d T
  if (shape.layers <= 0 || shape.d_model <= 0 || shape.seq_len <= 0) return missing;
  return static_cast<double>(shape.layers) * static_cast<double>(shape.d_model) * static_cast<double>(shape.seq_len);
}

// A sum that keeps missing values apart from NaN.
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
  std::ifstream input(file);
  if (!input) throw StorageError(file.string() + " could not be read");
  std::vector<PublishedRow> rows;
  int number = 0;
  bool has_header = false;
  for (std::string line; std::getline(input, line);) {
    ++number;
    const auto refuse = [&](const std::string& why) {
      throw StorageError(file.string() + ", line " + std::to_string(number) + ", " + why);
    };
    if (line.empty() || line.front() == '#') continue;
    if (!has_header) {
      if (line != columns) refuse("does not name the columns " + std::string(columns));
      has_header = true;
      continue;
    }
    std::array<std::string_view, 14> fields;
    std::string_view rest = line;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto comma = rest.find(',');
      if ((comma == std::string_view::npos) != (i + 1 == fields.size())) refuse("does not have 14 fields");
      fields[i] = rest.substr(0, comma);
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    const auto read = [&](std::string_view text, auto& value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size())
        refuse("has '" + std::string(text) + "' instead of a number");
    };
    PublishedRow row;
    int recompute_flag = 0;
    row.model = fields[0];
    read(fields[1], row.shape.layers);
    read(fields[2], row.shape.d_model);
    read(fields[3], row.shape.seq_len);
    read(fields[4], row.gpus);
    row.gpu = fields[5];
    read(fields[6], row.shape.params);
    read(fields[7], row.samples_per_s);
    read(fields[8], row.tokens_per_s);
    read(fields[9], recompute_flag);
    row.recomputed = recompute_flag != 0;
    read(fields[10], row.published.mfu_star);
    read(fields[11], row.published.mfu);
    read(fields[12], row.published.hfu_star);
    read(fields[13], row.published.hfu);
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
    char buffer[96];
    std::snprintf(buffer, sizeof buffer, "%s%s is published as %.4f but recomputes to %.6f", text.empty() ? "" : "; ",
                  name, said, found);
    text += buffer;
  };
  compare("mfu_star", published.mfu_star, computed.mfu_star);
  compare("mfu", published.mfu, computed.mfu);
  compare("hfu_star", published.hfu_star, computed.hfu_star);
  compare("hfu", published.hfu, computed.hfu);
  return text;
}

}  // namespace stepladder
