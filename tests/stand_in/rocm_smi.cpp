// Stands for AMD's management library in tests: two GPUs, the second at 0000:c1:00.0, partition 2.
#include <cstdint>

namespace {
int started = 0;
}

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT int stand_in_started() { return started; }
EXPORT int rsmi_init(std::uint64_t) {
  ++started;
  return 0;
}
EXPORT int rsmi_shut_down() {
  --started;
  return 0;
}
EXPORT int rsmi_num_monitor_devices(std::uint32_t* out) {
  *out = 2;
  return 0;
}
EXPORT int rsmi_dev_pci_id_get(std::uint32_t device, std::uint64_t* out) {
  *out = device == 0 ? 0x4100 : 0x2000C100;
  return 0;
}
// No edge sensor, as on MI300X.
EXPORT int rsmi_dev_temp_metric_get(std::uint32_t device, std::uint32_t sensor, int, std::int64_t* out) {
  if (device != 1 || sensor != 1) return 2;
  *out = 61'500;
  return 0;
}
EXPORT int rsmi_dev_power_ave_get(std::uint32_t device, std::uint32_t, std::uint64_t* out) {
  *out = device == 1 ? 412'000'000 : 1;
  return 0;
}
EXPORT int rsmi_dev_power_cap_get(std::uint32_t device, std::uint32_t, std::uint64_t* out) {
  *out = device == 1 ? 750'000'000 : 1;
  return 0;
}
}
