// `stepladder record export`: a claim as a folder to hand in.
#include <iostream>
#include <memory>

#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "app/record/submission.h"

namespace stepladder {
namespace {

struct ExportOptions {
  ClaimRequest request;
  std::vector<std::string> explain;
  std::string out;
};

std::map<std::string, std::string> explanations_of(const std::vector<std::string>& given) {
  std::map<std::string, std::string> explanations;
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UsageError("--explain " + text + ": write ID=TEXT");
    if (!explanations.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw UsageError("--explain " + text.substr(0, equals) + " is there twice");
  }
  return explanations;
}

int run_export(const ExportOptions& options, const CommonOptions& common) {
  const AskedClaim asked = asked_claim(options.request, common);
  const Submission submission{.pool = asked.pool,
                              .baseline = asked.baseline_pool(),
                              .claim = asked.claim,
                              .rule = asked.rule,
                              .options = options.request.options,
                              .claim_json = record_json(asked.claim, asked.rule),
                              .explanations = explanations_of(options.explain)};
  if (const auto open = unexplained_flags(submission); !open.empty()) {
    std::string flags;
    for (const RecordFlag& flag : asked.claim.flags)
      if (std::ranges::find(open, flag.id) != open.end()) flags += " " + flag.id + ": " + flag.why;
    return report_error(UsageError("nothing is written while a flag isn't explained:" + flags,
                                   {.code = "unexplained-flag",
                                    .argument = "--explain",
                                    .hint = "--explain ID=TEXT is printed in the submission"}),
                        exit_implausible);
  }
  write_submission(options.out, submission);
  std::cerr << "stepladder: wrote " << options.out << "\n";
  if (common.json) print(submission.claim_json);
  return exit_done;
}

}  // namespace

void add_record_export(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command = add_with_json(record, common, "export", "Write a claim as a folder to hand in");
  add_claim_options(*command, options->request)->required();
  command->add_option("-o,--out,--output", options->out, "Folder to write, which must not exist")->required();
  command->add_option("--explain", options->explain, "ID=TEXT: why a flag is no objection; may be there several times")
      ->allow_extra_args(false);
  choose_if_parsed(*command, chosen, options, common, run_export);
}

}  // namespace stepladder
