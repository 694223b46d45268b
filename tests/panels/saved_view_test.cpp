// Saved views in the window: saved, found by the palette, opened after a restart, and anybody's text in their place.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class SavedViews : public testing::Test {
 protected:
  SavedViews() {
    for (const char* name : {"alpha", "beta", "gamma"}) {
      runs_.push_back(
          store_.insert_finished({.name = name, .created_at = 1}, std::vector<StepRecord>{{.step = 1, .loss = 3}}));
      store_.metrics().append(runs_.back(), "val/acc", std::vector<MetricPoint>{{1, 0.25}});
    }
  }
  void start(const std::string& panel = "history", const DesktopSettings& settings = {}) {
    DesktopSettings changed = settings;
    changed.panels = {panel};
    app_.emplace(store_, nullptr, changed);
    ImGui::GetIO().DisplaySize = ImVec2(1700, 900);
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  }
  nlohmann::json state_of(const std::string& panel) { return nlohmann::json::parse(app_->settings().views.at(panel)); }
  void save_as(const std::string& name) {
    ASSERT_TRUE(imgui_.click(*app_, "history.views"));
    ASSERT_TRUE(imgui_.type(*app_, "views.name", name));
    imgui_.press(*app_, ImGuiKey_Escape);
  }
  void open_by_palette(const std::string& typed) {
    imgui_.press(*app_, ImGuiKey_K, true);
    ImGui::GetIO().AddInputCharactersUTF8(typed.c_str());
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    imgui_.press(*app_, ImGuiKey_Enter);
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  }
  std::string errors() {
    std::string all;
    for (const Message& message : app_->messages())
      if (message.is_error) all += message.text + "\n";
    return all;
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "project.db");
  std::vector<RunId> runs_;
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(SavedViews, KeepWhatTheWindowShows) {
  start("history", {.views = {{"history", R"x({"columns": ["min(val/acc)", "stage"], "sorted_by": "min(val/acc)",
      "ascending": true, "filter": "val/acc<0.3", "group": 6, "metric": 1})x"},
                              {"compare", R"({"log_y": true, "smoothing": 0.5, "axis": 2,
      "charts": {"columns": 3, "charts": [{"metric": "val/acc", "gap": true}]}})"},
                              {"run", "Metrics"}}});
  app_->workspace().selection.runs = {runs_[0], runs_[2]};
  imgui_.frame(*app_);
  save_as("night");
  EXPECT_EQ(app_->workspace().views, std::vector<std::string>{"night"});
  const DesktopSettings before = app_->settings();

  start("mfu");  // another start, with everything as at first
  EXPECT_TRUE(app_->workspace().selection.runs.empty());
  open_by_palette("open view night");
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(app_->settings().panels, std::vector<std::string>{"history"});
  EXPECT_EQ(app_->workspace().selection.runs, (std::set<RunId>{runs_[0], runs_[2]}));
  EXPECT_EQ(state_of("history"), nlohmann::json::parse(before.views.at("history")));
  EXPECT_EQ(state_of("compare"), nlohmann::json::parse(before.views.at("compare")));
  EXPECT_EQ(state_of("compare")["charts"]["charts"][0]["metric"], "val/acc");
  EXPECT_EQ(state_of("run")["tab"], "Metrics");
}

TEST_F(SavedViews, AreUpdatedRenamedDeletedAndUndone) {
  start();
  save_as("night");
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "alpha"));
  ASSERT_TRUE(imgui_.click(*app_, "history.views"));
  ASSERT_TRUE(imgui_.click(*app_, "views.update.night"));
  EXPECT_NE(store_.views().content("night")->find("alpha"), std::string::npos);
  ASSERT_TRUE(imgui_.click(*app_, "views.rename.night"));
  ASSERT_TRUE(imgui_.type(*app_, "views.new_name", "day"));
  EXPECT_EQ(store_.views().names(), std::vector<std::string>{"day"});
  EXPECT_EQ(app_->workspace().open_view, "day");
  ASSERT_TRUE(imgui_.click(*app_, "views.delete.day"));
  EXPECT_TRUE(store_.views().names().empty());
  imgui_.press(*app_, ImGuiKey_Escape);
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(app_->workspace().views, std::vector<std::string>{"day"});
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(app_->workspace().views, std::vector<std::string>{"night"});
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(store_.views().content("night")->find("alpha"), std::string::npos) << "as it was before the update";
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_TRUE(app_->workspace().views.empty());
}

TEST_F(SavedViews, SayWhichRunsAreGone) {
  start();
  app_->workspace().selection.runs = {runs_[0], runs_[1]};
  imgui_.frame(*app_);
  save_as("night");
  store_.curation().set(runs_[1], {.deleted_at = unix_now()});
  start();
  open_by_palette("open view night");
  EXPECT_EQ(errors(), "The view night names a run that is gone: beta.\n");
  EXPECT_EQ(app_->workspace().selection.runs, (std::set<RunId>{runs_[0]}));
}

TEST_F(SavedViews, OfAnotherProjectOrNoneAreSentences) {
  const std::vector<std::pair<std::string, std::string>> views{
      {"bad", "{\"states\": "},
      {"deep", "{\"states\": " + std::string(900'000, '[')},
      {"huge", std::string(10'000'000, 'x')},
      {"other", R"({"states": {"history": {"columns": 7, "filter": [1], "sorted_by": {}}, "compare": {"hidden": 3,
          "charts": "x", "zoom": ["a"]}, "run": [], "window": 4}, "panels": ["nowhere", "compare"], "selects": true,
          "runs": [{"id": 1, "uid": "another project's", "name": "theirs", "selected": true}]})"}};
  for (const auto& [name, content] : views) store_.settings().set("view:" + name, content);
  start();
  for (const auto& [name, content] : views) open_by_palette("open view " + name);
  EXPECT_NE(errors().find("The view bad can't be opened: it isn't JSON of a view."), std::string::npos) << errors();
  EXPECT_NE(errors().find("The view deep can't be opened: it is nested too deeply."), std::string::npos);
  EXPECT_NE(errors().find("the view huge holds 10000000 bytes"), std::string::npos);
  if (!store_.run(runs_[0])->uid.empty()) {
    EXPECT_NE(errors().find("The view other names a run that is gone: theirs."), std::string::npos) << errors();
  }
  EXPECT_EQ(app_->settings().panels, std::vector<std::string>{"compare"});
}

TEST_F(SavedViews, OfAnotherWindowAreSeen) {
  start();
  RunStore other = RunStore::open(folder_ / "project.db");
  other.views().save("theirs", R"({"format": 1, "states": {}})");
  app_->workspace().load(store_);  // F5; with a session it looks by itself
  open_by_palette("open view theirs");
  EXPECT_EQ(app_->workspace().open_view, "theirs");
  other.views().remove("theirs");
  open_by_palette("open view theirs");
  EXPECT_EQ(errors(), "The view theirs is gone: another window has deleted or renamed it.\n");
}

TEST_F(SavedViews, TakeTheArrangementsOfEarlierVersions) {
  start("compare", {.views = {{"compare", R"({"charts": {"now": {"columns": 1, "charts": [{"metric": "lr"}]},
      "saved": {"wide": {"columns": 3, "charts": [{"metric": "grad_norm", "gap": true}]}}}})"}}});
  EXPECT_EQ(state_of("compare")["charts"]["charts"][0]["metric"], "lr");
  ASSERT_EQ(store_.views().names(), std::vector<std::string>{"wide"});
  app_->workspace().selection.runs = {runs_[0]};
  open_by_palette("open view wide");
  EXPECT_EQ(state_of("compare")["charts"]["charts"][0]["metric"], "grad_norm");
  EXPECT_EQ(state_of("compare")["charts"]["columns"], 3);
  EXPECT_EQ(app_->workspace().selection.runs, (std::set<RunId>{runs_[0]})) << "it has no selection of its own";
}

}  // namespace
}  // namespace stepladder
