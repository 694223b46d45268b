// Decides which runs and ladders the views show, and in which colours.
#include <algorithm>
#include <array>
#include <limits>

#include "app/desktop/theme.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/judgement.h"

namespace stepladder {

const RunEntry* Workspace::find(RunId id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : &runs_[found->second];
}

RunEntry* Workspace::entry(RunId id) {
  return const_cast<RunEntry*>(find(id));
}

const Ladder* Workspace::ladder(LadderId id) const {
  const auto found = std::ranges::find(ladders_, id, &Ladder::id);
  return found == ladders_.end() ? nullptr : &*found;
}

std::vector<const RunEntry*> Workspace::runs_of(LadderId ladder) const {
  std::vector<const RunEntry*> found;
  for (const RunEntry& entry : runs_)
    if (entry.run.ladder == ladder) found.push_back(&entry);
  std::ranges::sort(found, [](const RunEntry* a, const RunEntry* b) {
    return std::pair(a->run.rung, a->run.repeat) < std::pair(b->run.rung, b->run.repeat);
  });
  return found;
}

std::string Workspace::why_not_measure() const {
  if (database.empty()) return "There isn't a database to keep the result in.";
  return running() ? "A run trains now, and both would disturb each other. Wait until it has ended." : "";
}

const RunEntry* Workspace::running() const {
  for (const std::vector<RunId>* runs : {&queue_, &others_}) {
    for (const RunId id : *runs) {
      const RunEntry* found = find(id);
      if (found && found->run.status == RunStatus::running) return found;
    }
  }
  return nullptr;
}

bool Workspace::is_ours(RunId run) const {
  return std::ranges::find(queue_, run) != queue_.end();
}

bool Workspace::trains_here() const {
  return std::ranges::any_of(queue_, [this](RunId id) {
    const RunEntry* found = find(id);
    return found && found->is_active();
  });
}

const RunEntry* Workspace::shown_live() const {
  if (const RunEntry* now_running = running()) return now_running;
  const RunEntry* last = nullptr;
  for (const RunEntry& entry : runs_) {
    const bool newer = !last || (!is_missing(entry.run.started_at) &&
                                 (is_missing(last->run.started_at) || entry.run.started_at > last->run.started_at));
    const bool is_seen = entry.run.source == "launched" || followed_.contains(entry.run.id);
    if (is_seen && entry.run.status != RunStatus::queued && newer) last = &entry;
  }
  return last;
}

std::vector<const RunEntry*> Workspace::waiting() const {
  std::vector<const RunEntry*> found;
  for (const std::vector<RunId>* runs : {&queue_, &others_}) {
    for (const RunId id : *runs) {
      const RunEntry* queued = find(id);
      if (queued && queued->run.status == RunStatus::queued) found.push_back(queued);
    }
  }
  return found;
}

const Ladder* Workspace::shown_ladder() const {
  if (const Ladder* chosen = ladder(selection.ladder)) return chosen;
  const auto newest = std::find_if(ladders_.rbegin(), ladders_.rend(),
                                   [this](const Ladder& each) { return !kept_tries.contains(each.id); });
  return newest == ladders_.rend() ? nullptr : &*newest;
}

std::vector<const RunEntry*> Workspace::compared() const {
  std::vector<const RunEntry*> found;
  for (const RunId id : selection.runs)
    if (const RunEntry* entry = find(id)) found.push_back(entry);
  if (!found.empty()) return found;
  if (const Ladder* shown = shown_ladder()) return runs_of(shown->id);
  constexpr std::size_t most = 12;  // what a legend can name
  for (auto entry = runs_.rbegin(); entry != runs_.rend() && found.size() < most; ++entry)
    if (entry->summary.steps > 0 || entry->is_active()) found.push_back(&*entry);
  std::ranges::reverse(found);
  return found;
}

const RunEntry* Workspace::run_of_ladder(LadderId ladder) const {
  const std::vector<const RunEntry*> runs = runs_of(ladder);
  std::vector<RunWithSummary> repeats;
  for (const RunEntry* entry : runs)
    if (entry->run.rung == selection.rung) repeats.emplace_back(&entry->run, &entry->summary);
  if (!repeats.empty()) return find(baseline_of(repeats).id);
  if (fastest_at_ != version) fastest_.clear();
  fastest_at_ = version;
  const auto [known, is_new] = fastest_.try_emplace(ladder, 0);
  if (!is_new) return find(known->second);
  const RunEntry *fastest = nullptr, *last = nullptr;
  for (const RunEntry* entry : runs) {
    if (entry->summary.steps > 0) last = entry;
    const double speed = entry->summary.tokens_per_s;
    if (entry->run.status != RunStatus::finished || is_missing(speed) ||
        (fastest && speed <= fastest->summary.tokens_per_s) ||
        plausibility_of(entry->run, entry->summary, 1, hardware).trust == Trust::impossible)
      continue;
    fastest = entry;
  }
  if (!fastest) fastest = last;
  known->second = fastest ? fastest->run.id : 0;
  return fastest;
}

const RunEntry* Workspace::current_run() const {
  if (const RunEntry* chosen = find(selection.shown_run)) return chosen;
  for (const RunId id : selection.runs)
    if (const RunEntry* selected = find(id)) return selected;
  if (const Ladder* shown = shown_ladder())
    if (const RunEntry* of_ladder = run_of_ladder(shown->id)) return of_ladder;
  for (auto entry = runs_.rbegin(); entry != runs_.rend(); ++entry)
    if (entry->summary.steps > 0) return &*entry;
  return runs_.empty() ? nullptr : &runs_.back();
}

int Workspace::colour_of(const Run& run) const {
  const auto chosen = selection.colours.find(run.id);
  return chosen == selection.colours.end() ? run.rung : chosen->second;
}

// Lines that share a hue, since there are more lines than hues, differ in dashes (rung_dash); the first hue, the
// baseline's, isn't shared. A rung's first run has the rung's hue, as in Launch and Ladder; of two other lines with the
// same hue, the one that had it first keeps it.
std::vector<int> Workspace::colours_of(const std::vector<RunId>& lines) const {
  std::array<int, rung_colour_count> uses{};
  std::vector<int> colours(lines.size(), -1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto chosen = selection.colours.find(lines[i]);
    if (chosen == selection.colours.end()) continue;
    colours[i] = chosen->second % rung_colour_count;
    ++uses[static_cast<std::size_t>(colours[i])];
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (colours[i] < 0) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const auto given = given_colours_.find(lines[i]);
    const RunEntry* entry = find(lines[i]);
    return std::pair(!entry || !entry->run.ladder || entry->run.repeat > 0,
                     given == given_colours_.end() ? std::numeric_limits<int>::max() : given->second.first);
  });
  for (const std::size_t i : order) {
    const RunEntry* entry = find(lines[i]);
    const auto [given, is_new] =
        given_colours_.try_emplace(lines[i], static_cast<int>(given_colours_.size()), entry ? entry->run.rung : 0);
    int& hue = given->second.second;
    constexpr int others = rung_colour_count - 1;
    const int fewest = *std::min_element(uses.begin() + 1, uses.end());
    const auto is_free = [&] { return uses[static_cast<std::size_t>(hue)] <= (hue == 0 ? 0 : fewest); };
    hue = hue < rung_colour_count ? std::max(0, hue) : 1 + (hue - rung_colour_count) % others;
    while (!is_free()) hue = (hue + 1) % rung_colour_count;
    const int round = uses[static_cast<std::size_t>(hue)]++;
    colours[i] = hue + (round == 0 ? 0 : others * round);
  }
  return colours;
}

void Workspace::curate(RunId id, const Curation& curation) {
  if (RunEntry* found = entry(id)) found->curation = curation;
  ++version;
}

void Workspace::rename(RunId id, const std::string& name) {
  if (RunEntry* found = entry(id)) found->run.name = name;
  ++version;
}

}  // namespace stepladder
