// `stepladder record bisect`: the commit that changed throughput, loss or a metric.
#include <iostream>
#include <memory>

#include "app/cli/record/record_report.h"
#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "app/record/commit_search.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct BisectOptions {
  CommitSearchRequest request;
  std::string folder, repository = ".";
  FigureOptions figure;
  std::int64_t runs = 3, budget = 100;
};

Json commit_json(const CommitSearch& search, std::size_t commit) {
  return {{"commit", search.commits()[commit]},
          {"n", search.bisection().figures(commit).values.size()},
          {"unusable", search.bisection().figures(commit).unusable},
          {"value", number(search.figure(commit))}};
}

Json bisect_json(const CommitSearch& search, const BisectOptions& options) {
  const Bisection& bisection = search.bisection();
  Json measured = Json::array();
  for (std::size_t i = 0; i < search.commits().size(); ++i)
    if (!bisection.figures(i).values.empty() || bisection.figures(i).unusable)
      measured.push_back(commit_json(search, i));
  Json found;
  if (const auto commit = bisection.found())
    found = {{"commit", search.commits()[*commit]},
             {"subject", search.subject(*commit)},
             {"change", number(search.change(*commit - 1, *commit))},
             {"ci95", interval_json(search.change_ci95(*commit - 1, *commit))}};
  return {{"by", to_string(search.question().by)},
          {"metric", search.question().by == FigureBy::metric ? Json(name_of(search.question())) : Json()},
          {"unit", text_or_null(search.unit())},
          {"commits", search.commits().size()},
          {"runs", bisection.runs()},
          {"budget", options.budget},
          {"verdict", bisection.found() ? "found" : "cannot-tell"},
          {"found", found},
          {"last_good", search.commits()[bisection.last_good()]},
          {"first_bad", search.commits()[bisection.first_bad()]},
          {"reason", text_or_null(bisection.reason())},
          {"measured", measured}};
}

std::string change_text(const CommitSearch& search, std::size_t commit) {
  const double change = search.change(commit - 1, commit);
  const Interval ci95 = search.change_ci95(commit - 1, commit);
  const bool time = takes_time(search.question());
  const auto figure = [&](double value) { return fmt::format(fmt::runtime(time ? "{:.4f}" : "{:+.5f}"), value); };
  std::string text = time ? "It takes " : "The " + name_of(search.question()) + " changes by ";
  text += figure(change) + (time ? " times as long" : "");
  if (ci95.known()) text += " (95 % interval " + figure(ci95.low) + " to " + figure(ci95.high) + ")";
  return text;
}

std::string bisect_text(const CommitSearch& search) {
  const Bisection& bisection = search.bisection();
  std::string text;
  for (std::size_t i = 0; i < search.commits().size(); ++i) {
    const CommitFigures& figures = bisection.figures(i);
    if (figures.values.empty() && !figures.unusable) continue;
    text += "  " + search.commits()[i].substr(0, 12) + "  ";
    text += figures.unusable ? "the command fails\n"
                             : significant(search.figure(i), 6) + " " + search.unit() + ", " +
                                   plural(std::ssize(figures.values), "run") + "\n";
  }
  if (const auto commit = bisection.found())
    return text + search.commits()[*commit] + " " + harmless(search.subject(*commit)) + "\n" +
           change_text(search, *commit) + " as at the commit before; " + plural(bisection.runs(), "run") + " in all\n";
  return text + "Inconclusive: " + bisection.reason() + ". The change is after " +
         search.commits()[bisection.last_good()].substr(0, 12) + " and not after " +
         search.commits()[bisection.first_bad()].substr(0, 12) + "\n";
}

int run_bisect(BisectOptions options, const CommonOptions& common) {
  CommitSearchRequest& request = options.request;
  if (request.good.empty() != request.bad.empty()) throw UsageError("record bisect needs both GOOD and BAD");
  request.folder = options.folder;
  request.repository = options.repository;
  request.question = asked_figure(options.figure);
  request.limits.first_runs = static_cast<std::size_t>(options.runs);
  request.limits.budget = static_cast<std::size_t>(options.budget);
  CommitSearch search(request);
  const bool finished = search.go_on(
      [&](const std::string& commit) {
        std::cerr << "stepladder: run " << search.bisection().runs() + 1 << " of at most " << options.budget << ": "
                  << commit.substr(0, 12) << "\n";
      },
      interrupted);
  if (!finished) {
    std::cerr << "stepladder: stopped; the same command line goes on\n";
    return exit_interrupted;
  }
  if (common.json)
    print(bisect_json(search, options));
  else
    std::cout << notes_text(bisect_text(search));
  return search.bisection().found() ? exit_done : exit_cannot_tell;
}

}  // namespace

void add_record_bisect(CLI::App& record, CommonOptions& common, Chosen& chosen) {
  const auto options = std::make_shared<BisectOptions>();
  CLI::App* command =
      add_with_json(record, common, "bisect", "Find the commit that changed throughput, loss or a metric");
  command->add_option("good", options->request.good, "A commit before the change");
  command->add_option("bad", options->request.bad, "A commit after it");
  command->add_option("command", options->request.command, "The command that prints a log, after --");
  command->add_option("-o,--out,--folder", options->folder, "Folder for the plan, the clone and the logs")
      ->required()
      ->type_name("FOLDER");
  command->add_option("--repository", options->repository, "Checkout whose commits are measured");
  add_figure_options(*command, options->figure);
  command->add_option("--repeats,--runs", options->runs, "Runs of a commit before it is judged")
      ->transform(positive_count());
  command->add_option("--budget", options->budget, "Most runs in all")->transform(positive_count());
  command->callback(
      [options, &common, &chosen] { chosen = [options, &common] { return run_bisect(*options, common); }; });
}

}  // namespace stepladder
