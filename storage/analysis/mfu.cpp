// FLOPs per token by each convention, and MosaicML's published tables recomputed as a check of them. A figure whose
// shape is unknown is `missing`, never the sum without that part.
#include "storage/analysis/mfu.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "storage/csv.h"
#include "storage/number_text.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Dense bf16 peaks that MosaicML's tables are based on; missing: another GPU.
double published_peak_tflops(std::string_view gpu) {
  return gpu.starts_with("a100") ? 312 : gpu.starts_with("h100") ? 989.4 : missing;
}

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
  return by_enum<MfuConvention, std::string_view>("6N", "llm.c", "nanoGPT", "PaLM/Mosaic", "Mosaic tables")[convention];
}

std::string_view formula_of(MfuConvention convention) {
  return by_enum<MfuConvention, std::string_view>("6 N", "6 N + 6 L d T, N with the vocabulary padded to 128",
                                                  "6 N + 12 L d T, N without position embeddings", "6 N + 12 L d T",
                                                  "6 N + 4 L d T")[convention];
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

namespace {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = line.find('|'); at != std::string_view::npos;) {
    const std::size_t end = line.find('|', at + 1);
    if (end == std::string_view::npos) break;
    std::string_view cell = line.substr(at + 1, end - at - 1);
    while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
    while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
    cells.push_back(cell);
    at = end;
  }
  return cells;
}

// Reads the lines of such tables one by one.
class PublishedTable {
 public:
  explicit PublishedTable(const std::vector<PublishedRow>& known) : known_(known) {}

  // Nullopt: the line is no row.
  std::optional<PublishedRow> row(std::string_view line) {
    const std::vector<std::string_view> cells = cells_of(line);
    if (is_published_header(line)) {
      header_ = line;
      columns_.assign(cells.begin(), cells.end());
      return std::nullopt;
    }
    const auto cell = [&](std::string_view name) {
      const auto found = std::ranges::find(columns_, name);
      const auto place = static_cast<std::size_t>(found - columns_.begin());
      return place < columns_.size() && place < cells.size() ? cells[place] : std::string_view();
    };
    PublishedRow row{.model = std::string(cell("Model")), .gpu = std::string(cell("GPUType"))};
    row.shape.params = parse_number<std::int64_t>(cell("ParamCount")).value_or(0);
    row.shape.seq_len = parse_number<std::int64_t>(cell("SeqLen (T)")).value_or(0);
    row.gpus = parse_number<int>(cell("NumGPUs")).value_or(0);
    row.tokens_per_s = parse_number<double>(cell("Throughput (T/s)")).value_or(missing);
    row.samples_per_s = parse_number<double>(cell("Throughput (S/s)")).value_or(missing);
    row.recomputed = cell("ActCkpt") == "True";
    row.published = {
        parse_number<double>(cell("MFU*")).value_or(missing), parse_number<double>(cell("MFU")).value_or(missing),
        parse_number<double>(cell("HFU*")).value_or(missing), parse_number<double>(cell("HFU")).value_or(missing)};
    if (row.model.empty() || row.shape.params <= 0 || row.shape.seq_len <= 0 || is_missing(row.tokens_per_s))
      return std::nullopt;
    if (const std::size_t times = row.gpu.find('x'); times != std::string::npos) {  // "8xA100_80GB"
      if (row.gpus <= 0) row.gpus = parse_number<int>(std::string_view(row.gpu).substr(0, times)).value_or(0);
      row.gpu.erase(0, times + 1);
    }
    if (row.gpus <= 0) return std::nullopt;
    for (char& c : row.gpu) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const auto model = std::ranges::find(known_, row.model, &PublishedRow::model);
    if (model != known_.end()) row.shape.layers = model->shape.layers, row.shape.d_model = model->shape.d_model;
    return row;
  }
  const std::string& header() const { return header_; }

 private:
  const std::vector<PublishedRow>& known_;
  std::string header_;
  std::vector<std::string> columns_;
};

template <class Take>
void for_rows(std::string_view markdown, const std::vector<PublishedRow>& known, const Take& take) {
  PublishedTable table(known);
  while (!markdown.empty()) {
    const std::string_view line = markdown.substr(0, markdown.find('\n'));
    markdown.remove_prefix(std::min(line.size() + 1, markdown.size()));
    if (const std::optional<PublishedRow> row = table.row(line)) take(*row, line, table.header());
  }
}

bool is_same(const PublishedRow& a, const PublishedRow& b) {
  return a.model == b.model && a.shape.seq_len == b.shape.seq_len && a.shape.params == b.shape.params &&
         a.gpus == b.gpus && a.gpu == b.gpu && a.tokens_per_s == b.tokens_per_s;
}

}  // namespace

bool is_published_header(std::string_view line) {
  return line.find('|') != std::string_view::npos && line.find("MFU") != std::string_view::npos &&
         line.find("HFU") != std::string_view::npos && line.find("Throughput") != std::string_view::npos;
}

std::vector<PublishedRow> published_rows(std::string_view markdown, const std::vector<PublishedRow>& known) {
  std::vector<PublishedRow> rows;
  for_rows(markdown, known,
           [&](const PublishedRow& row, std::string_view, const std::string&) { rows.push_back(row); });
  return rows;
}

std::vector<PublishedRow> with_imported(std::vector<PublishedRow> shipped, std::string_view markdown) {
  for (PublishedRow& row : published_rows(markdown, shipped)) {
    if (std::ranges::none_of(shipped, [&](const PublishedRow& each) { return is_same(each, row); }))
      shipped.push_back(std::move(row));
  }
  return shipped;
}

std::string unknown_rows(std::string_view markdown, const std::vector<PublishedRow>& known) {
  std::string lines, last_header;
  for_rows(markdown, known, [&](const PublishedRow& row, std::string_view line, const std::string& header) {
    if (std::ranges::any_of(known, [&](const PublishedRow& each) { return is_same(each, row); })) return;
    if (header != last_header) lines += header + "\n";
    last_header = header;
    (lines += line) += "\n";
  });
  return lines;
}

MosaicFigures recompute(const PublishedRow& row) {
  const double peak_tflops = row.gpus * published_peak_tflops(row.gpu);
  if (!(peak_tflops > 0)) return {};
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
    if (is_missing(said) || is_missing(found) || std::lround(said * 1e4) == std::lround(found * 1e4)) return;
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
