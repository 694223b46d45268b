// What was asked for during a frame, carried out after it.
#include <imgui.h>
#include <imgui_internal.h>  // ClearIniSettings

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "app/desktop/chart_export.h"
#include "app/desktop/desktop_app.h"
#include "app/desktop/theme.h"
#include "app/environment.h"
#include "app/figures/export.h"
#include "app/figures/run_figures.h"
#include "app/figures/tables.h"
#include "app/figures/tex.h"
#include "app/format.h"
#include "app/preset_ladder.h"
#include "app/verdict_text.h"

namespace stepladder {
namespace {

constexpr std::size_t most_undoable = 100;

// Reading for the charts may take this long between two frames. Panels ask in every frame for what is not there yet, so
// the rest comes in the next ones, and the window stays awake meanwhile.
constexpr std::chrono::milliseconds reading_time{30};

bool reads_points(const Command& command) {
  return std::holds_alternative<LoadSeries>(command) || std::holds_alternative<LoadExcerpt>(command) ||
         std::holds_alternative<LoadGlance>(command) || std::holds_alternative<LoadSight>(command);
}

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

bool DesktopApp::execute() {
  const Commands asked = std::exchange(commands_, {});
  keeps_drawing_ = false;
  bool anything = false;
  const auto reading_ends = std::chrono::steady_clock::now() + reading_time;
  for (const Command& command : asked) {
    if (std::holds_alternative<KeepDrawing>(command)) {
      keeps_drawing_ = true;
      continue;
    }
    anything = true;
    if (reads_points(command) && std::chrono::steady_clock::now() > reading_ends) continue;
    try {
      execute(command);
    } catch (const std::exception& error) {  // RecipeError, DataError, StorageError: the window lives on
      complain(error.what());
    }
  }
  return anything;
}

void DesktopApp::can_undo(std::string what, std::function<void()> undo) {
  if (undoable_.size() == most_undoable) undoable_.erase(undoable_.begin());
  undoable_.push_back({what, std::move(undo)});
  workspace_.undoable = what;
  notice(what);
}

void DesktopApp::curate(const Curate& asked) {
  std::vector<std::pair<RunId, Curation>> before;
  bool lists_change = false;
  store_.in_one_transaction([&] {
    for (const auto& [run, curation] : asked.changes) {
      const RunEntry* entry = workspace_.find(run);
      if (!entry) continue;
      if (curation.deleted() && !is_over(entry->run.status))
        throw std::runtime_error(entry->run.name + " has not ended: stop it before it is deleted.");
      before.emplace_back(run, entry->curation);
      lists_change = lists_change || curation.deleted() != entry->curation.deleted();
      store_.curate(run, curation);
    }
  });
  std::vector<RunId> selected;  // deleting ends it, taking back brings it back
  for (const auto& [run, curation] : before) {
    if (workspace_.selected_runs.contains(run)) selected.push_back(run);
  }
  for (const auto& [run, curation] : asked.changes) workspace_.curate(run, curation);
  if (lists_change) workspace_.load(store_);
  can_undo(asked.what, [this, before, selected, lists_change] {
    store_.in_one_transaction([&] {
      for (const auto& [run, curation] : before) {
        if (!store_.run(run)) throw std::runtime_error("Another program has emptied the bin: a run is gone for good.");
        store_.curate(run, curation);
      }
    });
    workspace_.load(store_);
    if (lists_change) workspace_.selected_runs.insert(selected.begin(), selected.end());
  });
}

void DesktopApp::say_of_bin(const EmptiedBin& emptied) {
  if (!emptied.runs.empty() || emptied.freed_bytes > 0) notice(emptied_text(emptied));
  for (const std::string& problem : emptied.problems) complain(problem);
}

void DesktopApp::empty_bin_now(bool sure) {
  const std::vector<BinnedRun> binned = runs_in_bin(store_);
  if (binned.empty()) return notice("The bin is empty");
  if (!sure) {
    std::int64_t bytes = 0;
    for (const BinnedRun& run : binned) bytes += run.checkpoint_bytes;
    const std::string what = runs_text(binned.size()) +
                             (bytes > 0 ? " and " + bytes_text(static_cast<double>(bytes)) + " of checkpoints" : "");
    return palette_.open({{.title = "Leave the bin as it is", .command = ShowPalette{}},
                          {.title = "Take " + what + " out for good", .command = EmptyBin{.sure = true}}});
  }
  const EmptiedBin emptied = empty_bin(store_, unix_now() + 1);
  // What was done before may have been done to runs that there are no more.
  undoable_.clear();
  workspace_.undoable.clear();
  workspace_.load(store_);
  say_of_bin(emptied);
}

// After a run has ended: whether the question is answered, or another round is needed.
void DesktopApp::ask_again() {
  try {
    ask_another_round();
  } catch (const std::exception& error) {  // also on the way through ingest, where nobody else would catch it
    workspace_.question.open = false;
    complain(error.what());
  }
}

void DesktopApp::ask_another_round() {
  Question& question = workspace_.question;
  std::vector<MeasuredRun> measured;
  std::map<int, RunId> first;  // of each of the two rungs, the run whose recipe is repeated
  int repeats = 0;
  for (const RunEntry* entry : workspace_.runs_of(question.asked.ladder)) {
    const int rung = entry->run.rung;
    if (rung != question.asked.baseline && rung != question.asked.rung) continue;
    if (!is_over(entry->run.status)) return;  // the round goes on
    if (entry->run.status != RunStatus::finished) continue;
    if (!entry->loaded) workspace_.load_series(store_, entry->run.id);
    measured.push_back({&entry->run, &entry->summary, &entry->series()});
    repeats += rung == question.asked.rung ? 1 : 0;
    first.try_emplace(rung, entry->run.id);
  }
  for (const RunId id : round_) {  // one that cannot be repeated would be tried for ever
    const RunEntry* entry = workspace_.find(id);
    if (entry && entry->run.status == RunStatus::finished) continue;
    throw std::runtime_error("It cannot be told: " + (entry ? entry->run.name : "a repeat") +
                             " did not go to its end, so no more repeats are made.");
  }
  const std::vector<RungJudgement> rungs = judge_rungs(measured, workspace_.hardware, question.asked.baseline);
  if (rungs.size() != 2) throw std::runtime_error("It cannot be told: both rungs need a run that went to its end.");
  const Gain& answer = rungs[rungs.back().rung == question.asked.rung ? 1 : 0].over_baseline;
  question.answers.push_back(answer);
  const bool is_clear = answer.verdict != Verdict::cannot_tell;
  if (is_clear && repeats >= 2) {
    question.open = false;
    notice("After " + std::to_string(repeats) + " runs each: " + verdict_text(answer) + ", " +
           factor_text(answer.factor));
  } else if (repeats >= question.asked.most_repeats) {
    question.open = false;
    notice("After " + std::to_string(repeats) + " runs each it still cannot be told.");
  } else {
    std::vector<RunId> runs;
    for (const auto& [rung, run] : first) runs.push_back(run);
    round_ = session_->repeat(runs, 1);
    workspace_.add_runs(store_, round_);
  }
}

void DesktopApp::save_ladder(const SaveLadder& asked) {
  const Ladder* ladder = workspace_.ladder(asked.ladder);
  if (!ladder) return;
  const std::string origin = ladder->source == "launched" ? "measured here, " + local_time_text(ladder->created_at)
                                                          : ladder->source + ", from " + ladder->source_path;
  const PlausibilityContext context = load_plausibility_context(&store_);
  const Study study = make_study(ladder->name, origin, load_runs(store_, store_.runs_of(ladder->id)), context.hardware);
  const std::filesystem::path file = export_path(store_.file(), ladder->name, asked.ending);
  if (asked.ending == ".html") {
    write_report(study, file);
  } else if (asked.ending == ".md") {
    write_file(file, study_markdown(study));
  } else if (asked.ending == ".csv") {
    write_file(file, summaries_csv(study, context));
  } else if (asked.ending == ".tex") {
    write_file(file, to_tex(ladder_figure(study), study));
  } else {
    export_figure(ladder_figure(study), file);  // light, whatever the window is: for paper and pages
  }
  notice("Saved " + file.string());
}

// What a step was spent on is read for runs that were trained here, of which the newest say enough.
void DesktopApp::advise_about(RunId about) {
  constexpr std::size_t most_read = 100;
  std::vector<AdviceRun> project;
  std::size_t read = 0;
  for (auto entry = workspace_.runs().rbegin(); entry != workspace_.runs().rend(); ++entry) {
    if (!is_over(entry->run.status)) continue;
    AdviceRun run{.run = &entry->run, .summary = &entry->summary};
    const bool wanted = entry->run.id == about || (entry->run.source == "launched" && read++ < most_read);
    if (wanted) run.parts = store_.mean_parts(entry->run, entry->summary.warmup_steps);
    project.push_back(run);
  }
  std::reverse(project.begin(), project.end());
  const Overview loss = store_.overview(about, Quantity::loss);
  for (AdviceRun& run : project) {
    if (run.run->id == about) run.loss = &loss;
  }
  workspace_.advice = {.asked = about,
                       .about = about,
                       .made_for = workspace_.version,
                       .list = advise(project, about, workspace_.hardware),
                       .outcomes = advice_held(project, workspace_.hardware)};
}

void DesktopApp::execute(const Command& command) {
  std::visit(
      Overloaded{
          [this](const LaunchLadder& launch) {
            if (!session_ || !workspace_.device) throw std::runtime_error("This machine is still being looked at.");
            const LaunchedLadder launched = session_->launch_ladder(launch.request, *workspace_.device);
            workspace_.add_ladder(store_, launched.ladder, launched.runs);
            show("live");
          },
          [this](const StopRun& stop) {
            if (session_) session_->stop(stop.run);
          },
          [this](const StopAll&) {
            workspace_.question.open = false;
            if (session_) session_->stop_all();
          },
          [this](const PauseRun& pause) {
            if (session_) session_->pause(pause.run, pause.paused);
          },
          [this](const MoveInQueue& move) {
            if (session_) session_->move_to(move.run, move.place);
          },
          [this](const Repeat& repeat) {
            if (!session_) return;
            workspace_.add_runs(store_, session_->repeat(repeat.runs, repeat.times));
            show("live");
          },
          [this](const ConfirmSpeedup& asked) {
            if (!session_) return;
            workspace_.question = {.asked = asked, .answers = {}, .open = true};
            round_.clear();
            ask_again();
          },
          [this](const ProposeLadder& propose) {
            if (!workspace_.device) throw std::runtime_error("This machine is still being looked at.");
            const Ladder* ladder = workspace_.ladder(propose.ladder);
            if (!ladder) return;
            workspace_.proposal = measure_here(*ladder, store_.runs_of(ladder->id), *workspace_.device);
            ++workspace_.proposals;
            show("launch");
          },
          [this](const ProposeStage& propose) {
            const RunEntry* entry = workspace_.find(propose.run);
            if (!entry) return;
            workspace_.proposal = LadderRequest{.name = entry->run.name + " + " + propose.stage,
                                                .base = recipe_from_json(entry->run.recipe),
                                                .stages = {{.stage = "baseline"}, {.stage = propose.stage}}};
            ++workspace_.proposals;
            show("launch");
          },
          [this](const LoadAdvice& load) { advise_about(load.about); },
          [this](const StopAsking&) { workspace_.question.open = false; },
          [this](const LoadSeries& load) { workspace_.load_series(store_, load.run); },
          [this](const LoadExcerpt& load) { workspace_.load_excerpt(store_, load.run, load.most); },
          [this](const LoadDetail& load) {
            workspace_.load_detail(store_, load.run);
            workspace_.environment = environment_json();
          },
          [this](const LoadGlance& load) { workspace_.load_glance(store_, load.run, load.quantity); },
          [this](const LoadSight& load) {
            workspace_.load_sight(store_, load.run, load.quantity, load.first, load.last);
          },
          [this](const ResumeRun& resume) {
            if (!session_) return;
            const RunEntry* entry = workspace_.find(resume.run);
            if (!entry) return;
            Recipe recipe = recipe_from_json(entry->run.recipe);
            recipe.steps = resume.steps;
            session_->resume(resume.run, recipe);
            workspace_.goes_on(store_, resume.run);
            show("live");
          },
          [this](const ForkRun& fork) {
            if (!session_ || !workspace_.device) throw std::runtime_error("This machine is still being looked at.");
            const RunEntry* entry = workspace_.find(fork.run);
            if (!entry) return;
            RunSpec asked{.base = recipe_from_json(entry->run.recipe), .fork_of = fork.run, .fork_step = fork.step};
            if (fork.step >= asked.base.steps) asked.base.steps = fork.step + asked.base.steps;
            workspace_.add_runs(store_, {session_->launch_run(asked, *workspace_.device)});
            show("live");
          },
          [this](const ShowPanel& panel) {
            if (!panel.beside) {
              show(panel.id);
            } else if (std::find(open_.begin(), open_.end(), panel.id) == open_.end()) {
              open_.push_back(panel.id);
              layout_is_stale_ = true;
            }
          },
          [this](const SelectLadder& select) {
            workspace_.selected_ladder = select.ladder;
            workspace_.selected_rung = -1;
            workspace_.baseline_rung = 0;
            if (std::find(open_.begin(), open_.end(), "ladder") == open_.end()) show("ladder");
          },
          [this](const SelectRung& select) { workspace_.selected_rung = select.rung; },
          [this](const SelectBaseline& select) { workspace_.baseline_rung = select.rung; },
          [this](const SelectRun& select) {
            if (select.selected) {
              workspace_.selected_runs.insert(select.run);
            } else {
              workspace_.selected_runs.erase(select.run);
            }
          },
          [this](const SelectRuns& select) {
            workspace_.selected_runs = {select.runs.begin(), select.runs.end()};
          },
          [this](const ClearSelection&) { workspace_.selected_runs.clear(); },
          [this](const OpenRun& open) {
            workspace_.shown_run = open.run;
            show("run");
          },
          [this](const Curate& asked) { curate(asked); },
          [this](const RenameRun& rename) {
            const RunEntry* entry = workspace_.find(rename.run);
            if (!entry || rename.name.empty() || rename.name == entry->run.name) return;
            const std::string before = entry->run.name;
            const auto call = [this, run = rename.run](const std::string& name) {
              store_.rename_run(run, name);
              workspace_.rename(run, name);
            };
            call(rename.name);
            can_undo("Renamed " + before + " to " + rename.name, [call, before] { call(before); });
          },
          [this](const RenameLadder& rename) {
            const Ladder* ladder = workspace_.ladder(rename.ladder);
            if (!ladder || rename.name.empty() || rename.name == ladder->name) return;
            const std::string before = ladder->name;
            const auto call = [this, id = rename.ladder](const std::string& name) {
              store_.rename_ladder(id, name);
              workspace_.load(store_);
            };
            call(rename.name);
            can_undo("Renamed " + before + " to " + rename.name, [call, before] { call(before); });
          },
          [this](const Undo&) {
            if (undoable_.empty()) return notice("There is nothing to undo");
            const Undoable last = std::move(undoable_.back());
            undoable_.pop_back();
            workspace_.undoable = undoable_.empty() ? "" : undoable_.back().what;
            last.undo();
            notice("Taken back: " + last.what);
          },
          [this](const PreviewImport& preview) {
            workspace_.import = {.state = ImportPreview::State::reading, .asked = preview};
            import_job_.preview(preview);
          },
          [this](const KeepImport&) {
            if (workspace_.database.empty()) throw std::runtime_error("There is no database to import into.");
            workspace_.import.state = ImportPreview::State::keeping;
            import_job_.keep(workspace_.database, workspace_.import.asked);
          },
          [this](const ForgetImport&) {
            import_job_.cancel();
            workspace_.import = {};
          },
          [](const KeepDrawing&) {},
          [this](const CopyText& copy) {
            ImGui::SetClipboardText(copy.text.c_str());
            notice(copy.what + " is on the clipboard");
          },
          [this](const SaveText& save) {
            const std::filesystem::path file = export_path(store_.file(), save.name, save.ending);
            write_file(file, save.text);
            notice("Saved " + file.string());
          },
          [this](const SaveFigure& save) {
            const std::filesystem::path file = export_path(store_.file(), save.figure.title, save.ending);
            export_figure(save.figure, file);  // light, whatever the window is: for paper and pages
            notice("Saved " + file.string());
          },
          [this](const SaveLadder& save) { save_ladder(save); },
          [this](const SetTheme& choice) {
            settings_.theme = choice.theme;
            ask_portal();
            apply_theme_and_scale();
          },
          [this](const ToggleTheme&) {
            settings_.theme = theme_is_dark() ? ThemeChoice::light : ThemeChoice::dark;
            apply_theme_and_scale();
          },
          [this](const ToggleLineStyles&) { workspace_.line_styles = !workspace_.line_styles; },
          [this](const ChangeScale& change) {
            settings_.scale =
                change.direction == 0
                    ? 1
                    : std::clamp(settings_.scale + 0.1f * static_cast<float>(change.direction), 0.6f, 3.0f);
            apply_theme_and_scale();
          },
          [this](const ResetLayout&) {
            open_ = {open_.front()};
            ImGui::ClearIniSettings();
            settings_.scale = 1;
            apply_theme_and_scale();
            layout_is_stale_ = true;
            notice("The layout is as it was at first");
          },
          [this](const Reload&) { workspace_.load(store_); },
          [this](const ShowPalette&) {
            std::vector<Action> actions = window_actions(panels_, workspace_);
            std::vector<Action> places = places_to_go(workspace_);
            actions.insert(actions.end(), std::make_move_iterator(places.begin()),
                           std::make_move_iterator(places.end()));
            palette_.open(std::move(actions));
          },
          [this](const EmptyBin& bin) { empty_bin_now(bin.sure); },
          [this](const DismissMessage& dismiss) {
            if (dismiss.index < workspace_.messages.size()) {
              workspace_.messages.erase(workspace_.messages.begin() + static_cast<std::ptrdiff_t>(dismiss.index));
            }
          },
      },
      command);
}

}  // namespace stepladder
