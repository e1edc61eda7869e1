// Stands for NVIDIA's management library in tests: one GPU at 0000:1B:00.0, whose answers a test sets.
#include <strings.h>

#include <cstdint>
#include <map>
#include <string>

namespace {

struct Answer {
  unsigned long long value = 0;
  int error = 0;
};

std::map<std::string, Answer>& answers() {
  static std::map<std::string, Answer> all;
  return all;
}

int started = 0;
constexpr int not_supported = 3, not_found = 6, not_initialised = 1;

template <class Number>
int answer(const std::string& name, void* device, Number* out) {
  if (started == 0 || device != &started) return not_initialised;
  const auto found = answers().find(name);
  if (found == answers().end()) return not_supported;
  *out = static_cast<Number>(found->second.value);
  return found->second.error;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT void stand_in_set(const char* name, unsigned long long value, int error) { answers()[name] = {value, error}; }
EXPORT void stand_in_forget() { answers().clear(); }
EXPORT int stand_in_started() { return started; }

EXPORT int nvmlInit_v2() {
  const auto refused = answers().find("init");
  if (refused != answers().end() && refused->second.error != 0) return refused->second.error;
  ++started;
  return 0;
}
EXPORT int nvmlShutdown() {
  --started;
  return 0;
}
EXPORT const char* nvmlErrorString(int error) { return error == not_found ? "Not Found" : "Driver Not Loaded"; }
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  if (strcasecmp(pci, "0000:1b:00.0") != 0) return not_found;
  *device = &started;
  return 0;
}
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  unsigned there = 0;
  if (const int error = answer("processes", device, &there); error != 0) return error;
  if (there > *count) return 7;  // insufficient size
  *count = there;
  for (unsigned i = 0; i < there; ++i) processes[i] = {1000 + i, 1, 0, 0};
  return 0;
}
EXPORT int nvmlDeviceGetTemperature(void* device, int, unsigned* out) { return answer("temperature", device, out); }
EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* out) { return answer("power", device, out); }
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* out) { return answer("power_limit", device, out); }
EXPORT int nvmlDeviceGetClockInfo(void* device, int which, unsigned* out) {
  return answer(which == 1 ? "sm_clock" : "memory_clock", device, out);
}
EXPORT int nvmlDeviceGetMaxClockInfo(void* device, int which, unsigned* out) {
  return answer(which == 1 ? "sm_clock_max" : "memory_clock_max", device, out);
}
// Of the two names for reasons, the older: the newer one is missing here, as in older drivers.
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* out) {
  return answer("reasons", device, out);
}
EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* out) { return answer("generation", device, out); }
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* out) { return answer("generation_max", device, out); }
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* out) { return answer("width", device, out); }
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* out) { return answer("width_max", device, out); }
}
