#include "tests/engine/fake_nvml.h"

#include <cstdio>
#include <cstring>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
// Device 0 and 1 differ in everything, so that a mix-up shows.
unsigned devices[2] = {0, 1};
unsigned number_of(void* device) {
  return *static_cast<unsigned*>(device);
}
}  // namespace

EXPORTED FakeNvml fake_nvml;
FakeNvml fake_nvml;

EXPORTED int nvmlInit_v2() {
  if (fake_nvml.init_error == 0) ++fake_nvml.open;
  return fake_nvml.init_error;
}
EXPORTED int nvmlShutdown() {
  --fake_nvml.open;
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= fake_nvml.devices) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  *device = &devices[index];
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  if (std::strncmp(address, "0000:0", 6) != 0) return 6;  // NVML_ERROR_NOT_FOUND
  *device = &devices[address[6] - '0'];
  return 0;
}
EXPORTED int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = number_of(device);
  return fake_nvml.error;
}
EXPORTED int nvmlDeviceGetName(void* device, char* name, unsigned bytes) {
  std::snprintf(name, bytes, "Card %u", number_of(device));
  return fake_nvml.error;
}
EXPORTED int cuDeviceGet(int* device, int index) {
  *device = 70 + index;
  return fake_nvml.cuda_order ? 0 : 3;  // CUDA_ERROR_NOT_INITIALIZED
}
EXPORTED int cuDeviceGetPCIBusId(char* address, int bytes, int device) {
  std::snprintf(address, static_cast<std::size_t>(bytes), "0000:0%d:00.0", 71 - device);
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strcmp(uuid, "GPU-one") != 0) return 6;  // NVML_ERROR_NOT_FOUND
  *device = &devices[1];
  return 0;
}
EXPORTED int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1400 + 100 * number_of(device) : 9999;
  return fake_nvml.error;
}
EXPORTED int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 250'500 + 1000 * number_of(device);
  return fake_nvml.error;
}
EXPORTED int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  *celsius = sensor == 0 ? 60 + number_of(device) : 999;
  return fake_nvml.error;
}
EXPORTED int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  gpu_and_memory[0] = 87 + number_of(device);
  gpu_and_memory[1] = 12;
  return fake_nvml.error;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  total_free_used[0] = 80ull << 30;
  total_free_used[1] = 50ull << 30;
  total_free_used[2] = (30ull + number_of(device)) << 30;
  return fake_nvml.error;
}
EXPORTED int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  *reasons = fake_nvml.reasons;
  return fake_nvml.event_reasons ? fake_nvml.error : 3;  // NVML_ERROR_NOT_SUPPORTED
}
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = fake_nvml.reasons;
  return fake_nvml.error;
}

struct ProcessSample {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long at_us;
  unsigned multiprocessors, memory, encoder, decoder;
};
EXPORTED int nvmlDeviceGetProcessUtilization(void*, ProcessSample* samples, unsigned* count, unsigned long long since) {
  fake_nvml.asked_since = since;
  if (fake_nvml.process_count == 0) return 6;      // NVML_ERROR_NOT_FOUND
  if (*count < fake_nvml.process_count) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  *count = fake_nvml.process_count;
  for (unsigned i = 0; i < *count; ++i)
    samples[i] = {fake_nvml.processes[i].pid, 1000 + i, fake_nvml.processes[i].percent, 99, 99, 99};
  return fake_nvml.error;
}
