// AMD's management library for temperature and power (rocm_smi.h); clocks and link from sysfs, whose form does not change
// with the library's version. Reasons for lower clocks are in neither.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <sstream>

#include "platforms/monitor/library.hpp"
#include "platforms/monitor/monitors.hpp"
#include "platforms/proc_text.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t edge = 0, junction = 1;  // sensors
constexpr int current_temperature = 0;           // RSMI_TEMP_CURRENT

// "0000:c1:00.0" as the number that the library uses: domain << 32 | bus << 8 | device << 3 | function.
std::optional<std::uint64_t> pci_number(const std::string& pci) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  char end = 0;
  if (std::sscanf(pci.c_str(), "%x:%x:%x.%x%c", &domain, &bus, &device, &function, &end) != 4) return {};
  return std::uint64_t{domain} << 32 | bus << 8 | device << 3 | function;
}

struct Clocks {
  std::optional<std::uint64_t> now, most;
};
// Lines such as "1: 2100Mhz *", the present one with a star.
Clocks clocks_of(const std::optional<std::string>& text) {
  Clocks clocks;
  if (!text) return clocks;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto mhz = leading_number(trimmed(std::string_view(line).substr(colon + 1)));
    if (!mhz) continue;
    if (!clocks.most || *mhz > *clocks.most) clocks.most = mhz;
    if (line.find('*') != std::string::npos) clocks.now = mhz;
  }
  return clocks;
}

// "32.0 GT/s PCIe" as a generation.
std::optional<std::uint64_t> generation(const std::optional<std::string>& speed) {
  constexpr std::pair<const char*, std::uint64_t> speeds[] = {{"2.5 ", 1},  {"5.0 ", 2},  {"8.0 ", 3},
                                                              {"16.0 ", 4}, {"32.0 ", 5}, {"64.0 ", 6}};
  if (speed)
    for (const auto& [text, number] : speeds)
      if (speed->starts_with(text)) return number;
  return {};
}

class RocmSmi final : public GpuMonitor {
 public:
  explicit RocmSmi(std::string folder)
      : library_("SLACKTIER_ROCM_SMI", {"librocm_smi64.so", "librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5",
                                        "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so"}),
        folder_(std::move(folder)) {}
  ~RocmSmi() override {
    if (!started_) return;
    if (auto* shutdown = library_.function<int()>("rsmi_shut_down")) shutdown();
  }

  std::string open(const std::string& pci) {
    if (!library_) return fmt::format("ROCm SMI is not there: {}", library_.reason());
    auto* init = library_.function<int(std::uint64_t)>("rsmi_init");
    auto* count = library_.function<int(std::uint32_t*)>("rsmi_num_monitor_devices");
    auto* address = library_.function<int(std::uint32_t, std::uint64_t*)>("rsmi_dev_pci_id_get");
    if (init == nullptr || count == nullptr || address == nullptr) return "the library opened as ROCm SMI has no rsmi_init";
    if (const int error = init(0); error != 0) return fmt::format("ROCm SMI does not start: status {}", error);
    started_ = true;
    const auto wanted = pci_number(pci);
    std::uint32_t devices = 0;
    count(&devices);
    for (device_ = 0; device_ < devices; ++device_) {
      std::uint64_t at = 0;
      // Bits 28 to 31 hold a partition's number in newer versions.
      if (address(device_, &at) == 0 && wanted && (at & ~std::uint64_t{0xF0000000}) == *wanted) return {};
    }
    return fmt::format("ROCm SMI knows no GPU at {}", pci);
  }

  GpuReading read() override {
    GpuReading reading;
    auto* temperature = library_.function<int(std::uint32_t, std::uint32_t, int, std::int64_t*)>("rsmi_dev_temp_metric_get");
    for (const std::uint32_t sensor : {junction, edge}) {
      std::int64_t millidegrees = 0;
      if (temperature == nullptr || temperature(device_, sensor, current_temperature, &millidegrees) != 0) continue;
      reading.temperature_c = static_cast<double>(millidegrees) / 1e3;
      break;
    }
    // Which of the two an ASIC has depends on its generation.
    std::uint64_t microwatts = 0;
    int kind = 0;
    auto* power = library_.function<int(std::uint32_t, std::uint64_t*, int*)>("rsmi_dev_power_get");
    auto* average = library_.function<int(std::uint32_t, std::uint32_t, std::uint64_t*)>("rsmi_dev_power_ave_get");
    auto* cap = library_.function<int(std::uint32_t, std::uint32_t, std::uint64_t*)>("rsmi_dev_power_cap_get");
    if ((power != nullptr && power(device_, &microwatts, &kind) == 0) ||
        (average != nullptr && average(device_, 0, &microwatts) == 0))
      reading.power_w = static_cast<double>(microwatts) / 1e6;
    if (cap != nullptr && cap(device_, 0, &microwatts) == 0) reading.power_limit_w = static_cast<double>(microwatts) / 1e6;
    const Clocks core = clocks_of(read_text(folder_ + "/pp_dpm_sclk")),
                 memory = clocks_of(read_text(folder_ + "/pp_dpm_mclk"));
    reading.clock_mhz = core.now;
    reading.clock_max_mhz = core.most;
    reading.memory_clock_mhz = memory.now;
    reading.memory_clock_max_mhz = memory.most;
    reading.link_generation = generation(read_line(folder_ + "/current_link_speed"));
    reading.link_generation_max = generation(read_line(folder_ + "/max_link_speed"));
    const auto lanes = [&](const char* file) -> std::optional<std::uint64_t> {
      const auto line = read_line(folder_ + file);
      return line ? leading_number(*line) : std::nullopt;
    };
    reading.link_lanes = lanes("/current_link_width");
    reading.link_lanes_max = lanes("/max_link_width");
    return reading;
  }

 private:
  RuntimeLibrary library_;
  const std::string folder_;
  bool started_ = false;
  std::uint32_t device_ = 0;
};

}  // namespace

OpenedMonitor open_rocm_smi(const std::string& pci, const std::string& root) {
  auto smi = std::make_unique<RocmSmi>(root + "/sys/bus/pci/devices/" + pci);
  if (std::string reason = smi->open(pci); !reason.empty()) return {nullptr, reason};
  return {std::move(smi), {}};
}

}  // namespace slacktier
