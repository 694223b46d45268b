// One run, from its recipe to its end, on the calling thread.
#pragma once

#include <functional>

#include "engine/step_tracing.h"
#include "engine/trainer/step/make_step.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// As TrainerLibrary::train (engine/trainer_library.h).
void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit,
           const StepMakers& makers = {});

// As TrainerLibrary::trace_steps.
void trace_training(const StepTracing& asked, const std::function<bool()>& stop_requested,
                    const StepMakers& makers = {});

}  // namespace stepladder
