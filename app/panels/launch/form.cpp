// Turns the Launch view's form into a request and checks it, in every frame. Errors become texts for the field or row
// that they concern. A plan that was made for another request isn't used: it is compared by the request's text.
#include "app/panels/launch/form.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/desktop/fields.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/host/environment.h"
#include "app/text/format.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

const ModelPreset& model_of(const LaunchInput& form) {
  return model_presets()[static_cast<std::size_t>(form.model)];
}

// The recipe of the form, with the first value of each list. Values that it cannot have keep their default and are
// noted in `problems`.
Recipe recipe_of(const LaunchInput& form, std::map<std::string, std::string>& problems,
                 std::vector<SweptValue>& swept) {
  Recipe recipe;
  apply_preset(recipe, model_of(form).name);
  if (form.data == LaunchData::shakespeare) recipe.data = form.shakespeare;
  if (form.data == LaunchData::file) recipe.data = form.file;
  for (const RecipeField& field : recipe_fields()) {
    const std::string name = field.name;
    const auto typed = form.values.find(name);
    if (typed == form.values.end()) continue;
    std::string value = field.is_path() ? plain_path(typed->second) : typed->second;
    if (value.empty()) continue;
    try {
      if (listed_values(field, value).size() > 1) {
        swept.push_back(parse_swept_value(name + "=" + value, "list"));
        value = swept.back().values.front();
      }
      set_value(recipe, name, value);
    } catch (const RecipeError& error) {
      const std::string why = error.why.worded(label_of);
      problems[name] = why.substr(why.starts_with(name + " ") ? name.size() + 1 : 0);  // a list's error names its field
    }
  }
  try {
    validate(recipe);
  } catch (const RecipeError& error) {
    problems.try_emplace(error.field(), error.why.worded(label_of));
  }
  return recipe;
}

std::string device_problem(const Recipe& recipe, const Workspace& workspace) {
  if (recipe.device == "cuda" && workspace.device->gpus.empty())
    return "No CUDA device: " + workspace.device->cuda_note;
  if (recipe.device == "mps" && !workspace.device->mps) return "This machine has no Apple GPU.";
  return "";
}

std::string problem_of(const LaunchInput& form, const CheckedForm& checked, const Workspace& workspace) {
  const bool is_here = form.where.empty();
  if (is_here && !workspace.device_problem.empty()) return capitalised(workspace.device_problem) + ".";
  if (is_here && !workspace.device) return "Detecting hardware...";
  if (form.data == LaunchData::file && form.file.empty()) return "Enter the path of a data file.";
  for (const RecipeField& field : recipe_fields()) {
    if (const auto found = checked.field_problems.find(field.name); found != checked.field_problems.end())
      return std::string(field.label) + ": " + found->second;
  }
  for (std::size_t i = 0; i < checked.row_problems.size(); ++i) {
    if (!checked.row_problems[i].empty() && form.rows[i].on)
      return "Rung '" + form.rows[i].text + "': " + checked.row_problems[i];
  }
  if (!checked.sweep_problem.empty()) return checked.sweep_problem;
  return is_here ? device_problem(checked.request.base, workspace) : "";
}

// Turns the ladder into the sweep over the lists. The rows of a sweep over more than seeds don't count.
void take_lists(CheckedForm& checked) {
  if (checked.swept.empty()) return;
  checked.is_sweep = std::any_of(checked.swept.begin(), checked.swept.end(),
                                 [](const SweptValue& swept) { return swept.name != "seed"; });
  try {
    checked.request = sweep_request(checked.request, checked.swept);
  } catch (const RecipeError& error) {
    checked.sweep_problem = error.why.worded(label_of);
  }
  if (!checked.is_sweep) return;
  std::fill(checked.asked.begin(), checked.asked.end(), -1);
  std::fill(checked.row_problems.begin(), checked.row_problems.end(), "");
}

// All of it that the form alone decides.
CheckedForm checked_input(const LaunchInput& form) {
  CheckedForm checked;
  LadderRequest& request = checked.request;
  request.name = form.name;
  request.notes = form.notes;
  request.base = recipe_of(form, checked.field_problems, checked.swept);
  request.climb = form.climb;
  request.repeats = form.repeats;
  request.interleave = form.interleave;
  if (form.when_quiet) request.quiet_patience = until_quiet;
  request.rungs.push_back(
      {.stages = {all_stages().front().id}, .seed_tokens_per_s = form.baseline_seed_tokens_per_s.value_or(missing)});
  for (const RungRow& row : form.rows) {
    int place = -1;
    std::string problem;
    try {
      PlannedRung rung = parse_rung(row.text, "rung");
      rung.seed_tokens_per_s = row.seed_tokens_per_s.value_or(missing);
      if (row.on) {
        place = static_cast<int>(request.rungs.size());
        request.rungs.push_back(std::move(rung));
      }
    } catch (const RecipeError& error) {
      problem = error.why.worded(label_of);
      checked.can_be_saved = false;
    }
    checked.asked.push_back(place);
    checked.row_problems.push_back(std::move(problem));
  }
  take_lists(checked);
  checked.text = text_of(request);
  return checked;
}

// A sweep is launched whole or not at all.
std::string refused_combination(const CheckedForm& checked) {
  if (!checked.is_sweep || !checked.plan || checked.plan->plan.skipped.empty()) return "";
  const SkippedRung& refused = checked.plan->plan.skipped.front();
  return refused.stage + ": " + refused.reason.worded(label_of);
}

}  // namespace

LaunchForm::LaunchForm() {
  shakespeare = (assets_folder() / "tinyshakespeare.txt").string();
  for (const Stage& stage : all_stages()) {
    if (&stage != &all_stages().front())
      insert_row(rows.size(), stage.id, stage.kind == StageKind::systems_only).is_usual = true;
  }
}

RungRow& LaunchForm::insert_row(std::size_t place, std::string text, bool on) {
  return *rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(place),
                      RungRow{.id = next_id_++, .text = std::move(text), .on = on});
}

void LaunchForm::propose(const CheckedForm& checked, const Workspace& workspace) {
  if (!checked.can_be_planned) return;  // the last request that could be keeps its proposal
  const std::pair by(checked.check, checked.plan);
  if (by == proposed_by_) return;
  proposed_by_ = by;
  if (std::string recipe = to_json(checked.request.base); recipe != proposed_for_) {
    proposed_for_ = std::move(recipe);
    for (RungRow& row : rows) {
      row.not_proposed.clear();
      const Stage* stage = row.is_usual ? find_stage(row.text) : nullptr;
      if (stage) row.on = stage->kind == StageKind::systems_only;
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RungRow& row = rows[i];
    const Stage* stage = find_stage(row.text);
    Recipe with;
    if (stage) stage->apply(with);
    const bool is_bf16 = with.autocast == Autocast::bf16 || with.matmul == MatmulPrecision::bf16;
    const std::string device = workspace.device->resolve(checked.request.base.device);
    const std::string why = is_bf16 ? why_not_bf16(checked.request.base.device, *workspace.device, workspace.hardware,
                                                   workspace.measured_runs())
                            : stage ? stage->seldom_faster(device)
                                    : "";
    if (!why.empty()) row.not_proposed = why;
    for (std::size_t rung = 1; checked.plan && rung < checked.plan->slower.size(); ++rung)
      if (checked.plan->plan.rungs[rung].asked == checked.asked[i])
        row.not_proposed = why.empty() ? checked.plan->slower[rung] : why;
    if (const SkippedRung* skipped = checked.plan ? checked.plan->skipped(checked.asked[i]) : nullptr)
      row.not_proposed = skipped->reason.worded(label_of);
    if (row.is_usual && !row.not_proposed.empty()) row.on = false;
  }
}

void LaunchForm::take_model(int chosen) {
  model = chosen;
  for (const RecipeField& field : recipe_fields()) {
    const std::string_view field_name = field.name;
    if (field.group == FieldGroup::model || field_name == "batch" || field_name == "seq" || field_name == "lr")
      values.erase(field.name);
  }
}

void LaunchForm::take(const LadderDraft& draft) {
  const LadderRequest& request = draft.request;
  const std::vector<ModelPreset>& presets = model_presets();
  const auto preset =
      std::find_if(presets.begin(), presets.end(), [&](const auto& known) { return known.name == request.base.model; });
  if (preset != presets.end()) model = static_cast<int>(preset - presets.begin());
  Recipe usual;
  apply_preset(usual, model_of(*this).name);
  values.clear();
  const auto usual_values = describe(usual);
  const auto new_values = describe(request.base);
  for (std::size_t i = 0; i < new_values.size(); ++i) {
    const auto& [value_name, value] = new_values[i];
    if (value_name != "model" && value_name != "data" && value != usual_values[i].second) values[value_name] = value;
  }
  const std::string& path = request.base.data;
  file = path;
  file_field.show(path);
  data = path.empty() ? LaunchData::synthetic : path == shakespeare ? LaunchData::shakespeare : LaunchData::file;
  name = request.name;
  notes = request.notes;
  repeats = request.repeats;
  interleave = request.interleave;
  when_quiet = request.quiet_patience.has_value();
  climb = request.climb;
  for (const SweptValue& swept : draft.over) values[swept.name] = list_text(swept.values);
  rows.clear();
  const auto known = [](double value) { return is_missing(value) ? std::optional<double>() : value; };
  baseline_seed_tokens_per_s = {};
  for (const DraftRung& rung : draft.rungs) {
    const PlannedRung first = rows.empty() && &rung == &draft.rungs.front() ? parse_rung(rung.text) : PlannedRung{};
    if (first.name.empty() && first.stages == std::vector<std::string>{all_stages().front().id}) {
      for (const auto& [value_name, value] : first.values) values[value_name] = value;
      baseline_seed_tokens_per_s = known(rung.seed_tokens_per_s);
      continue;
    }
    insert_row(rows.size(), rung.text, rung.on).seed_tokens_per_s = known(rung.seed_tokens_per_s);
  }
}

const CheckedForm& FormCheck::check(const LaunchForm& form, const Workspace& workspace) {
  if (!input_ || *input_ != form) {
    input_ = form;
    const std::uint64_t check = checked_.check + 1;
    checked_ = checked_input(form);
    checked_.check = check;
  }
  checked_.problem = problem_of(form, checked_, workspace);
  checked_.can_be_planned = false;
  checked_.plan = nullptr;
  if (!form.where.empty()) return checked_;  // another machine has its own files and devices
  const bool has_data = form.data != LaunchData::file || !form.file.empty();
  checked_.can_be_planned =
      workspace.device && has_data && checked_.field_problems.empty() && checked_.sweep_problem.empty();
  if (workspace.launch->plan.asked == checked_.text) checked_.plan = &workspace.launch->plan;
  if (checked_.problem.empty() && checked_.plan) checked_.problem = checked_.plan->problem;
  if (checked_.problem.empty()) checked_.problem = refused_combination(checked_);
  return checked_;
}

std::vector<std::string> listed_values(const RecipeField& field, const std::string& typed) {
  std::vector<std::string> values;
  if (typed.empty()) return values;
  if (!field.takes_list()) return {typed};
  for (std::string_view value : split_list(typed)) {
    while (value.starts_with(' ')) value.remove_prefix(1);
    while (value.ends_with(' ')) value.remove_suffix(1);
    values.emplace_back(value);
  }
  return values;
}

std::string list_text(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

LadderDraft draft_of(const LaunchForm& form, const CheckedForm& checked) {
  LadderDraft draft{.request = checked.request, .rungs = {}, .over = checked.swept};
  draft.request.rungs.clear();
  draft.request.seeds.clear();
  draft.request.climb = form.climb;
  draft.request.repeats = form.repeats;
  draft.rungs.push_back({.text = all_stages().front().id,
                         .on = true,
                         .seed_tokens_per_s = form.baseline_seed_tokens_per_s.value_or(missing)});
  for (const RungRow& row : form.rows)
    draft.rungs.push_back(
        {.text = row.text, .on = row.on, .seed_tokens_per_s = row.seed_tokens_per_s.value_or(missing)});
  return draft;
}

}  // namespace stepladder
