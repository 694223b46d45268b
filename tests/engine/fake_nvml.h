// A stand-in for NVIDIA's management library that returns what a test sets. The test opens the same library and
// finds this under the name "fake_nvml".
#pragma once

struct FakeNvml {
  int init_error = 0;
  unsigned devices = 2;
  int error = 0;              // every reading returns it
  bool event_reasons = true;  // false: only the older of the two functions works
  unsigned long long reasons = 0;
  int open = 0;             // nvmlInit less nvmlShutdown
  bool cuda_order = false;  // its CUDA driver knows the devices, and counts them the other way round

  // The processes on the GPU, and the share of its multiprocessors in percent.
  struct Process {
    unsigned pid = 0;
    unsigned percent = 0;
  };
  unsigned process_count = 0;
  Process processes[2];
  unsigned long long asked_since = 0;  // by the last question
};
