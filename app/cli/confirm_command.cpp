// `stepladder confirm`: repeats a run and its base in turns until the verdict on the speed-up is clear.
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/progress.h"
#include "app/cli/record/subcommands.h"
#include "app/cli/report.h"
#include "app/exit_status.h"
#include "app/record/run_doubt.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/session/session.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/analysis/metric_comparison.h"

namespace stepladder {
namespace {

struct ConfirmOptions {
  bool adopts = false;
  std::string run;
  std::string base;  // empty: the ladder's baseline
  std::optional<int> max_repeats;
  std::string metric;
  bool lower = false, higher = false;
  double until = 0;  // percent; 0: the usual noise floor
  int patience_s = 300;
};

constexpr int most_repeats_until = 50;

// A run of the ladder's first rung.
Run baseline_of(RunStore& store, const Run& run) {
  if (!run.ladder)
    throw UsageError(fmt::format("run {} isn't in a ladder; name the run to compare it with: --against RUN", run.id));
  const std::vector<Run> runs = store.runs_of(*run.ladder);  // by rung, then repeat
  if (runs.empty() || runs.front().rung == run.rung) {
    throw UsageError(fmt::format(
        "run {} is the baseline of its ladder; name another run to compare it with: --against RUN", run.id));
  }
  return runs.front();
}

// Follows round after round until the question is answered; Ctrl-C stops it.
void follow_rounds(Session& session) {
  const SpeedupConfirmation& confirmation = *session.confirmation();
  std::vector<RunId> followed;
  while (confirmation.is_open()) {
    if (confirmation.round() != followed) {
      followed = confirmation.round();
      std::cerr << "stepladder: repeat " << confirmation.answer().repeats + 1 << " of at most "
                << confirmation.question().max_repeats << "; so far "
                << (confirmation.question().metric
                        ? difference_text(name_of(*confirmation.question().metric), confirmation.answer().metric)
                        : factor_text(confirmation.answer().speedup.factor) +
                              ", 95 % interval: " + ci95_text(confirmation.answer().speedup.ci95))
                << "\n";
      follow(session, followed);
    }
    if (interrupted()) session.stop_confirming();
    session.wait_and_drain(std::chrono::milliseconds(20));
  }
}

int exit_status(const SpeedupConfirmation& confirmation, bool is_guarded) {
  using State = SpeedupConfirmation::State;
  if (interrupted() || confirmation.state() == State::stopped) return exit_interrupted;
  if (confirmation.state() == State::failed) return exit_failed;
  const SpeedupAnswer& answer = confirmation.answer();
  if (answer.speedup.worst() == Trust::impossible) return exit_implausible;
  if (answer.speedup.verdict == Verdict::cannot_tell) return exit_cannot_tell;
  if (answer.speedup.verdict == Verdict::slower) return exit_slower;
  return is_guarded ? exit_loss_not_at_parity : exit_done;
}

Json metric_answer_json(const SpeedupConfirmation& confirmation) {
  const SpeedupAnswer& answer = confirmation.answer();
  return {{"run", confirmation.question().run},
          {"base", confirmation.question().base},
          {"metric", name_of(*confirmation.question().metric)},
          {"value", number(answer.metric.value)},
          {"base_value", number(answer.metric.base)},
          {"difference", number(answer.metric.difference)},
          {"ci95", interval_json(answer.metric.ci95)},
          {"verdict", to_string(answer.metric.verdict)},
          {"repeats", answer.repeats},
          {"needed_runs", count_or_null(answer.metric.needed_runs)},
          {"reason", answer.reason}};
}

Json answer_json(const SpeedupConfirmation& confirmation) {
  const SpeedupAnswer& answer = confirmation.answer();
  if (confirmation.question().metric) return metric_answer_json(confirmation);
  return {{"run", confirmation.question().run},
          {"base", confirmation.question().base},
          {"speedup", number(answer.speedup.factor)},
          {"ci95", interval_json(answer.speedup.ci95)},
          {"verdict", to_string(answer.speedup.verdict)},
          {"trust", to_string(answer.speedup.worst())},
          {"repeats", answer.repeats},
          {"needed_runs", count_or_null(answer.speedup.needed_runs)},
          {"reason", answer.reason}};
}

std::string answer_text(const SpeedupConfirmation& confirmation) {
  const SpeedupAnswer& answer = confirmation.answer();
  const std::string sides =
      fmt::format("Run {} against run {}: ", confirmation.question().run, confirmation.question().base);
  if (const auto& metric = confirmation.question().metric)
    return sides + difference_text(name_of(*metric), answer.metric) + "\n" + answer.reason + "\n";
  return sides + verdict_text(answer.speedup) + ", " + factor_text(answer.speedup.factor) + ", " +
         (is_informative(answer.speedup.ci95) ? "95 % interval " + ci95_text(answer.speedup.ci95)
                                              : "no 95 % interval") +
         "\n" + answer.reason + "\n";
}

// What forbids to call the factor a gain although it is one: the loss or the steps gave way.
DoubtedGain loss_guard(RunStore& store, const Run& base, const Run& run) {
  const auto side_of = [&](const Run& asked) {
    std::vector<Run> runs = other_finished_repeats(store, asked);
    runs.insert(runs.begin(), asked);
    return load_runs(store, runs);
  };
  const std::vector<LoadedRun> before = side_of(base), after = side_of(run);
  return doubt_of(measured(before), measured(after), load_run_context(&store).hardware, true);
}

int confirm(const ConfirmOptions& options, const CommonOptions& common) {
  open_existing(common.database);  // throws if the database doesn't exist
  Session session(common.database);
  const Run run = find_run(session.store(), options.run);
  const Run base = options.base.empty() ? baseline_of(session.store(), run) : find_run(session.store(), options.base);
  if (options.adopts) session.adopt({run.id, base.id});
  SpeedupQuestion question{.run = run.id, .base = base.id};
  if (!options.metric.empty()) {
    question.metric = metric_named(options.metric);
    const auto known = session.store().metrics().find(run.id, question.metric->metric);
    // Of a metric that the run hasn't got, the session says so.
    const Direction stated = known ? known->metric.direction : direction_of_name(question.metric->metric);
    if (known || options.lower || options.higher || stated != Direction::unknown)
      question.direction = asked_direction(question.metric->metric, options.lower, options.higher, stated);
  }
  if (options.until > 0) question.noise_floor = options.until / 100;
  question.max_repeats = options.max_repeats.value_or(options.until > 0 ? most_repeats_until : question.max_repeats);
  question.quiet_patience = options.patience_s > 0 ? QuietPatience(options.patience_s) : std::nullopt;
  const std::size_t runs_before = 1 + std::min(other_finished_repeats(session.store(), run).size(),
                                               other_finished_repeats(session.store(), base).size());
  session.confirm(question);
  follow_rounds(session);
  const bool is_speed = !question.metric && !interrupted();
  const DoubtedGain guard = is_speed ? loss_guard(session.store(), base, run) : DoubtedGain{};
  const bool is_guarded = guard.doubt == RunDoubt::guard;
  const bool is_trusted = session.confirmation()->answer().speedup.worst() == Trust::trusted;
  const std::string loss = is_guarded ? "Not a gain: " + guard.reason + "."
                           : guard.doubt == RunDoubt::cannot_tell && is_trusted
                               ? "Whether the loss stayed the same isn't known: " + guard.reason + "."
                               : "";
  // An earlier `confirm` looked at its runs; nobody has stored how often.
  const std::string looks =
      runs_before > 2 ? fmt::format("It began with {} runs of each; looks at these before aren't counted.", runs_before)
                      : "";
  print_as(
      common,
      [&] {
        Json json = answer_json(*session.confirmation());
        for (const std::string& more : {loss, looks})
          if (!more.empty()) json["reason"] = json["reason"].get<std::string>() + " " + more;
        return json;
      },
      [&] {
        return notes_text(answer_text(*session.confirmation()) + loss + (loss.empty() ? "" : "\n") + looks +
                          (looks.empty() ? "" : "\n"));
      });
  return exit_status(*session.confirmation(), is_guarded);
}

}  // namespace

Subcommand confirm_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ConfirmOptions>();
  CLI::App* command =
      add_with_json(app, common, "confirm", "Repeat a run and its baseline in turns until the verdict is clear");
  command->add_option("run", options->run, "A run that was launched here; all finished repeats of its rung count")
      ->required();
  command->add_option("--against", options->base, "The run to compare with (by default the ladder's baseline)");
  command
      ->add_option("--repeats,--max-repeats", options->max_repeats,
                   "Repeat until each side has this many runs, existing ones included (default 6; with --until 50)")
      ->check(between(2, 1000));
  command->add_option("--until", options->until, "Repeat until a difference of this size can be told: 1%")
      ->transform(percent(0.01, 0.01, 50));
  command
      ->add_option(
          "--patience", options->patience_s,
          "Seconds that a repeat waits for a quiet machine before it starts anyway (default 300; 0: not at all)")
      ->check(between(0, 1'000'000));
  CLI::Option* metric = command->add_option(
      "--metric", options->metric, "Judge this in place of the speed, with new seeds: val_loss, min(val/loss)");
  CLI::Option* lower =
      command->add_flag("--lower", options->lower, "Lower values of the metric are better")->needs(metric);
  command->add_flag("--higher", options->higher, "Higher values of the metric are better")
      ->needs(metric)
      ->excludes(lower);
  add_adopt(*command, options->adopts);
  return {command, [options, &common] { return confirm(*options, common); }};
}

}  // namespace stepladder
