// A stand-in for NVIDIA's management library that shows what a test tells it to. The test opens the same library and
// finds this under the name "fake_nvml".
#pragma once

struct FakeNvml {
  int init_error = 0;
  unsigned devices = 2;
  int error = 0;              // what every reading gives
  bool event_reasons = true;  // false: only the older of the two functions works
  unsigned long long reasons = 0;
  int open = 0;  // nvmlInit less nvmlShutdown
};
