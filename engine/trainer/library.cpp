// The two symbols that libstepladder_trainer exports (engine/trainer_library.h).
#include "engine/trainer/call_times.h"
#include "engine/trainer/device_probe.h"
#include "engine/trainer/peak_probe.h"
#include "engine/trainer/trainer.h"
#include "engine/trainer_library.h"

extern "C" __attribute__((visibility("default"))) const stepladder::TrainerLibrary* stepladder_trainer_library() {
  static const stepladder::TrainerLibrary library = {
      .probe = stepladder::probe,
      .train = [](const stepladder::TrainingJob& job, stepladder::RunControl& control,
                  const std::function<void(const stepladder::RunEvent&)>& emit) { train(job, control, emit); },
      .measure_peak = stepladder::measure_peak,
      .time_calls = stepladder::time_calls,
      .trace_steps = [](const stepladder::StepTracing& asked,
                        const std::function<bool()>& stop_requested) { trace_training(asked, stop_requested); },
  };
  return &library;
}

extern "C" __attribute__((visibility("default"))) const char stepladder_trainer_interface[] =
    STEPLADDER_TRAINER_INTERFACE;
