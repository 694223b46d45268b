#include "app/desktop/models/forecast_reader.h"

#include <exception>

namespace stepladder {
namespace {

PlanForecast forecast_of(const std::string& asked, const std::vector<Recipe>& rungs, int cores, RunStore& store) {
  try {
    return {.asked = asked, .ladder = forecast_ladder(store, rungs, cores)};
  } catch (const std::exception&) {  // a damaged trace, a locked file: nothing is predicted
    return {.asked = asked, .ladder = {}};
  }
}

}  // namespace

void ForecastReader::update(std::shared_ptr<const PlanForecast>& into, const LaunchPlan& plan, int cores,
                            RunStore& store, std::uint64_t version, std::chrono::milliseconds patience) {
  const bool is_new = plan.asked != asked_ || version != version_;
  if (is_new && !plan.plan.rungs.empty() && !background_.is_pending()) {
    asked_ = plan.asked;
    version_ = version;
    std::vector<Recipe> rungs;
    for (const Rung& rung : plan.plan.rungs) rungs.push_back(rung.recipe);
    if (store.file().empty()) {  // in memory: tests
      into = std::make_shared<const PlanForecast>(forecast_of(asked_, rungs, cores, store));
      return;
    }
    background_.start({.asked = {}, .data = {}},
                      [asked = asked_, rungs = std::move(rungs), cores, file = store.file()](JobControl&) {
                        try {
                          RunStore own = RunStore::open(file, RunStore::Mode::read_only);
                          return std::make_shared<const PlanForecast>(forecast_of(asked, rungs, cores, own));
                        } catch (const std::exception&) {  // StorageError: a file that nobody can open
                          return std::make_shared<const PlanForecast>(PlanForecast{.asked = asked, .ladder = {}});
                        }
                      });
  }
  background_.take(into, patience);
}

}  // namespace stepladder
