// The identity of the machine of a measurement: times on different machines aren't comparable.
#pragma once

#include <string>

#include "app/runs/run_json.h"

namespace stepladder {

// JSON object: cpu, cores (usable by this process), memory_gb, gpus (models), gpu_driver, system. Read from the
// operating system alone; loads no LibTorch. Unknown values are null.
Json machine_fingerprint();

// "cores: 8 instead of 4; gpus: ...", `there` being the machine of an earlier measurement; empty if they agree.
std::string machine_difference(const Json& here, const Json& there);

}  // namespace stepladder
