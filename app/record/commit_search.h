// `stepladder record bisect`: measures commits of a git repository in a clone of its own and finds the one that changed
// a figure. The user's checkout and repository are only read. In its folder: .state/plan.json, tree/ (the clone),
// runs/0001-COMMIT.log ... and how each run ended. A later call reads these and continues.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/host/git.h"
#include "app/host/held_folder.h"
#include "app/record/bisection.h"
#include "app/record/log_figure.h"
#include "app/runs/run_json.h"

namespace stepladder {

struct CommitSearchRequest {
  std::filesystem::path folder;
  std::filesystem::path repository = ".";
  std::string good, bad;  // any names of commits; both empty: those of the existing plan
  std::vector<std::string> command;
  FigureQuestion question;
  BisectionLimits limits;  // the budget may be raised later
};

class CommitSearch {
 public:
  // Creates the folder and its plan, or continues existing ones, as Experiment does. Throws UsageError and
  // StorageError.
  explicit CommitSearch(const CommitSearchRequest& request);

  // Measures until there is an answer or `stop`; false if it was stopped. `begins` is called before each new run.
  bool go_on(const std::function<void(const std::string& commit)>& begins, const std::function<bool()>& stop);

  const Bisection& bisection() const { return *bisection_; }
  const std::vector<std::string>& commits() const { return commits_; }  // the good one first
  const FigureQuestion& question() const { return question_; }
  const std::string& unit() const { return unit_; }
  std::string subject(std::size_t commit) const;
  // The figure after the change / before it (a loss or metric: after - before), with its 95 % interval.
  double change(std::size_t before, std::size_t after) const;
  Interval change_ci95(std::size_t before, std::size_t after) const;
  double figure(std::size_t commit) const;  // its mean; geometric if it is a time

 private:
  Json asked_plan(const CommitSearchRequest& request);
  void use(const Json& plan);
  void require_same(const CommitSearchRequest& request, const Json& plan) const;
  void remove_checkout() const;
  void check_out(const std::string& commit);
  void take(std::size_t commit, const std::filesystem::path& log, int exit_status, double wall_s);

  const std::filesystem::path folder_;
  std::optional<HeldFolder> held_;
  std::optional<GitCheckout> repository_;
  std::vector<std::string> command_;
  std::vector<std::string> commits_;
  FigureQuestion question_;
  std::string unit_;
  std::optional<Bisection> bisection_;  // once the plan is there
};

}  // namespace stepladder
