// `stepladder mfu`: computes MFU from a model's shape and a throughput under every convention, or recomputes published
// figures and those that the project has imported; the arithmetic is storage/analysis's.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/text/format.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

struct MfuQuestion {
  ModelShape shape;
  double tokens_per_s = missing;
  int gpus = 1;
  std::string gpu;
  std::string precision = "bf16";
  double peak_tflops = missing;  // of one device; instead of `gpu`
  bool recomputed = false;       // activations are recomputed, so HFU exceeds MFU

  void add_to(CLI::App& command);
};

struct MfuAnswer {
  MfuQuestion question;
  double peak_tflops = missing;  // of one device
  std::string peak_source;
  struct Row {
    MfuConvention convention;
    double flops_per_token = missing;
    double mfu = missing;
    double hfu = missing;
  };
  std::vector<Row> rows;  // one for each convention

  bool is_impossible() const {
    return std::ranges::any_of(rows,
                               [](const Row& row) { return row.convention == MfuConvention::six_n && row.mfu > 1; });
  }
};

Json figures_json(const MosaicFigures& figures) {
  return {{"mfu_star", number(figures.mfu_star)},
          {"mfu", number(figures.mfu)},
          {"hfu_star", number(figures.hfu_star)},
          {"hfu", number(figures.hfu)}};
}

MosaicFigures difference(const MosaicFigures& published, const MosaicFigures& computed) {
  return {computed.mfu_star - published.mfu_star, computed.mfu - published.mfu, computed.hfu_star - published.hfu_star,
          computed.hfu - published.hfu};
}

void MfuQuestion::add_to(CLI::App& command) {
  command.add_option("--params", shape.params, "Number of parameters, embeddings included")
      ->transform(positive_count());
  command.add_option("--layers", shape.layers, "Layers")->transform(positive_count());
  command.add_option("--d-model", shape.d_model, "Width of the residual stream")->transform(positive_count());
  command.add_option("--seq", shape.seq_len, "Tokens per sequence")->transform(positive_count());
  command.add_option("--vocab", shape.vocab, "Vocabulary size, for llm.c's padding")->transform(positive_count());
  command.add_option("--throughput", tokens_per_s, "Tokens per second of all GPUs together")->check(positive_number());
  command.add_option("--gpus", gpus, "Number of GPUs")->transform(positive_count());
  CLI::Option* name = command.add_option("--gpu", gpu, "GPU name, to look up its peak: a100, h100, 4090");
  command.add_option("--precision", precision, "Precision of the peak (default bf16)");
  command.add_option("--peak-tflops", peak_tflops, "Dense peak of one GPU, instead of --gpu")
      ->check(positive_number())
      ->excludes(name);
  command.add_flag("--recompute", recomputed, "The backward pass recomputes activations");
}

// Throws UsageError if the question lacks parameters or names hardware that the table lacks.
MfuAnswer answer_mfu(const MfuQuestion& question, const HardwareTable& hardware) {
  if (question.shape.params <= 0) throw UsageError("mfu needs --params, or --published for the published tables");
  MfuAnswer answer{.question = question, .peak_tflops = question.peak_tflops, .peak_source = "given", .rows = {}};
  if (is_missing(question.peak_tflops)) {
    answer.peak_source.clear();
    if (!question.gpu.empty()) {
      const Peak peak = hardware.peak(question.gpu, question.precision);
      if (!peak.known() || peak.assumed)
        throw UsageError("the hardware table has no " + question.precision + " peak for '" + question.gpu +
                         "'; give --peak-tflops");
      answer.peak_tflops = peak.tflops;
      answer.peak_source =
          fmt::format("{}, {}, dense ({})", peak.hardware->name, to_string(peak.precision), peak.hardware->source);
    }
  }
  const double total = is_missing(answer.peak_tflops) ? missing : answer.peak_tflops * question.gpus;
  for (const MfuConvention convention : all_conventions) {
    const double flops = flops_per_token(convention, question.shape);
    const double done = question.recomputed ? flops_per_token_recomputed(convention, question.shape) : flops;
    answer.rows.push_back({convention, flops, utilisation(flops, question.tokens_per_s, total),
                           utilisation(done, question.tokens_per_s, total)});
  }
  return answer;
}

Json mfu_json(const MfuAnswer& answer) {
  Json rows = Json::array();
  for (const MfuAnswer::Row& row : answer.rows) {
    rows.push_back({{"convention", to_string(row.convention)},
                    {"formula", formula_of(row.convention)},
                    {"flops_per_token", number(row.flops_per_token)},
                    {"mfu", number(row.mfu)},
                    {"hfu", number(row.hfu)}});
  }
  const MfuQuestion& question = answer.question;
  return {{"params", question.shape.params},
          {"tokens_per_s", number(question.tokens_per_s)},
          {"gpus", question.gpus},
          {"gpu", question.gpu.empty() ? Json() : Json(question.gpu)},
          {"peak_tflops", number(answer.peak_tflops)},
          {"peak_source", answer.peak_source.empty() ? Json() : Json(answer.peak_source)},
          {"trust", is_missing(answer.peak_tflops) || is_missing(question.tokens_per_s)
                        ? Json()
                        : Json(to_string(answer.is_impossible() ? Trust::impossible : Trust::trusted))},
          {"conventions", rows}};
}

std::string mfu_text(const MfuAnswer& answer) {
  std::vector<std::vector<std::string>> rows = {{"convention", "FLOPs per token", "MFU", "HFU", "formula"}};
  for (const MfuAnswer::Row& row : answer.rows)
    rows.push_back({std::string(to_string(row.convention)), significant(row.flops_per_token, 4), decimals(row.mfu, 4),
                    decimals(row.hfu, 4), std::string(formula_of(row.convention))});
  std::string text = table(rows, {false, true, true, true, false});
  if (!is_missing(answer.peak_tflops))
    text += "\n" + notes_text(fmt::format("Peak: {} x {} TFLOP/s, {}\n", answer.question.gpus,
                                          significant(answer.peak_tflops, 4), answer.peak_source));
  if (answer.is_impossible())
    text += notes_text(
        "Impossible: above the peak even by the lowest convention, 6N; most likely the clock was read before the "
        "device "
        "had finished\n");
  return text;
}

Json published_json(const std::vector<PublishedRow>& rows) {
  Json list = Json::array();
  for (const PublishedRow& row : rows) {
    const MosaicFigures computed = recompute(row);
    const std::string note = disagreement(row.published, computed);
    list.push_back({{"model", row.model},
                    {"seq_len", row.shape.seq_len},
                    {"gpus", row.gpus},
                    {"gpu", row.gpu},
                    {"params", row.shape.params},
                    {"samples_per_s", row.samples_per_s},
                    {"published", figures_json(row.published)},
                    {"computed", figures_json(computed)},
                    {"difference", figures_json(difference(row.published, computed))},
                    {"note", note.empty() ? Json() : Json(note)}});
  }
  return list;
}

std::string published_table(const std::vector<PublishedRow>& rows) {
  std::vector<std::vector<std::string>> cells = {{"model", "T", "GPUs", "samples/s", "MFU*", "computed", "MFU",
                                                  "computed", "HFU*", "computed", "HFU", "computed", "note"}};
  for (const PublishedRow& row : rows) {
    const MosaicFigures found = recompute(row);
    std::vector<std::string> cell = {row.model, std::to_string(row.shape.seq_len),
                                     fmt::format("{}x{}", row.gpus, row.gpu), decimals(row.samples_per_s, 4)};
    for (const auto figure :
         {&MosaicFigures::mfu_star, &MosaicFigures::mfu, &MosaicFigures::hfu_star, &MosaicFigures::hfu}) {
      cell.push_back(decimals(row.published.*figure, 4));
      cell.push_back(decimals(found.*figure, 4));
    }
    cell.push_back(disagreement(row.published, found));
    cells.push_back(std::move(cell));
  }
  return table(cells, {false, true, true, true, true, true, true, true, true, true, true, true, false});
}

int mfu(bool published, const MfuQuestion& question, const CommonOptions& common) {
  if (published) {
    std::vector<PublishedRow> rows = read_published(assets_folder() / "mosaic-mfu.csv");
    if (std::optional<RunStore> store = open_to_list(common)) {
      const std::string imported = store->settings().get(published_setting).value_or("");
      rows = with_imported(std::move(rows), imported);
    }
    return print_as(
        common, [&] { return published_json(rows); }, [&] { return published_table(rows); });
  }
  const MfuAnswer answer = answer_mfu(question, HardwareTable::load(assets_folder()));
  return print_as(
      common, [&] { return mfu_json(answer); }, [&] { return mfu_text(answer); });
}

}  // namespace

Subcommand mfu_command(CLI::App& app, CommonOptions& common) {
  auto published = std::make_shared<bool>(false);
  auto question = std::make_shared<MfuQuestion>();
  CLI::App* command = add_with_json(app, common, "mfu", "Compute model FLOPs utilisation by every convention");
  question->add_to(*command);
  const std::vector<CLI::Option*> others = command->get_options();
  CLI::Option* tables = command->add_flag("--published", *published, "Recompute MosaicML's published tables instead");
  for (CLI::Option* other : others)
    if (other->get_name() != "--help" && other->get_name() != "--json") tables->excludes(other);
  return {command, [published, question, &common] { return mfu(*published, *question, common); }};
}

}  // namespace stepladder
