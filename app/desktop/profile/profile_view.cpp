#include "app/desktop/profile/profile_view.h"

#include <algorithm>

#include "app/format.h"

namespace stepladder {
namespace {

std::string detail_of(const StoredTrace& trace) {
  const bool is_nsight = trace.format == "nsight";
  return std::string(is_nsight ? "Nsight Systems" : "PyTorch's profiler") + ", " +
         (trace.profile.on_gpu ? "GPU" : "CPU") +
         (trace.profile.ranks > 1 ? ", " + std::to_string(trace.profile.ranks) + " ranks" : "") + ", " +
         grouped(trace.profile.slices) + " slices";
}

// Traces first, each the newest first.
std::vector<ProfileSource> sources_of(RunStore& store) {
  std::vector<ProfileSource> sources;
  for (const StoredTrace& trace : store.traces().list()) {
    sources.push_back({.side = {.kind = ProfileSide::Kind::trace, .id = trace.id},
                       .name = trace.name,
                       .detail = detail_of(trace),
                       .run = trace.run,
                       .has_slices = !store.traces().details().steps(trace.id).empty()});
  }
  std::reverse(sources.begin(), sources.end());
  std::vector<ProfileSource> runs;
  for (const RunId id : store.traces().details().timed_runs()) {
    const std::optional<Run> run = store.run(id);
    if (!run) continue;
    runs.push_back({.side = {.kind = ProfileSide::Kind::run, .id = id},
                    .name = run->name,
                    .detail = "operators timed here, run " + std::to_string(id),
                    .run = id});
  }
  sources.insert(sources.end(), runs.rbegin(), runs.rend());
  return sources;
}

void take_slices(ShownProfile& shown, RunStore& store) {
  TraceDetails details = store.traces().details();
  shown.anatomy = details.anatomy(shown.side.id);
  shown.steps = details.steps(shown.side.id);
  if (shown.steps.empty()) return;
  const auto is_of_rank = [&](const KeptStepName& each) { return each.rank == shown.side.rank; };
  if (std::none_of(shown.steps.begin(), shown.steps.end(), is_of_rank)) shown.side.rank = shown.steps.front().rank;
  std::vector<KeptStepName> of_rank;
  std::copy_if(shown.steps.begin(), shown.steps.end(), std::back_inserter(of_rank), is_of_rank);
  const bool is_kept = std::any_of(of_rank.begin(), of_rank.end(),
                                   [&](const KeptStepName& each) { return each.step == shown.side.step; });
  // The first, the median and the last are kept; of fewer, the median comes first.
  if (!is_kept) shown.side.step = of_rank[of_rank.size() / 2].step;
  shown.slices = std::make_shared<StepSlices>(details.slices(shown.side.id, shown.side.rank, shown.side.step));
  shown.index = std::make_shared<SliceIndex>(*shown.slices);
}

std::optional<ShownProfile> read_side(const ProfileSide& side, RunStore& store) {
  ShownProfile shown{.side = side};
  if (side.kind == ProfileSide::Kind::trace) {
    std::optional<StoredTrace> trace = store.traces().find(side.id);
    if (!trace) return std::nullopt;
    shown.name = trace->name;
    shown.on_gpu = trace->profile.on_gpu;
    shown.step_ms = mean_step_ms(trace->profile);
    shown.kinds = step_profile(*trace);
    shown.operators = std::move(trace->profile.operators);
    take_slices(shown, store);
  } else if (side.kind == ProfileSide::Kind::run) {
    const std::optional<Run> run = store.run(side.id);
    if (!run) return std::nullopt;
    shown.name = run->name;
    shown.kinds = fit_to_step(store.profile(run->id), store.summary(*run).dt_ms_median).profile;
    if (shown.kinds.steps == 0) return std::nullopt;
    shown.step_ms = step_ms(shown.kinds);
    shown.operators = traced(shown.kinds);
  } else {
    return std::nullopt;
  }
  return shown;
}

}  // namespace

ProfileView profile_view(const ProfileQuestion& question, RunStore& store) {
  ProfileView view{.asked = question};
  try {
    view.sources = sources_of(store);
    view.before = read_side(question.before, store);
    view.after = read_side(question.after, store);
  } catch (const std::exception& error) {  // StorageError: damaged slices, a locked file
    view.problem = error.what();
  }
  if (view.before && view.after) view.difference = difference(view.before->operators, view.after->operators);
  return view;
}

bool ProfileReader::update(std::shared_ptr<const ProfileView>& into, RunStore& store,
                           std::chrono::milliseconds patience) {
  if (asked_ != started_ && !background_.is_pending()) {
    started_ = asked_;
    if (store.file().empty()) {  // in memory: tests
      into = std::make_shared<const ProfileView>(profile_view(wanted_, store));
      return true;
    }
    background_.start({.asked = {started_}, .data = {}}, [question = wanted_, file = store.file()] {
      try {
        RunStore own = RunStore::open(file, RunStore::Mode::read_only);
        return std::make_shared<const ProfileView>(profile_view(question, own));
      } catch (const std::exception& error) {  // StorageError: a file that nobody can open
        return std::make_shared<const ProfileView>(ProfileView{.asked = question, .problem = error.what()});
      }
    });
  }
  return background_.take(into, patience);
}

}  // namespace stepladder
