// Against libraries of the tests' own that stand for the vendors'.
#include "platforms/gpu_monitor.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;
using slacktier::test::ProcTree;

namespace {

DeviceFacts nvidia(const std::string& pci = "0000:1b:00.0") {
  DeviceFacts facts;
  facts.name = "NVIDIA H200";
  facts.backend = "cuda";
  facts.architecture = "90";
  facts.pci = pci;
  return facts;
}

// The stand-in as a test speaks to it, and the variable by which the monitor finds it.
class StandIn {
 public:
  StandIn(const char* variable, const char* path) : variable_(variable), handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(handle_ != nullptr);
    ::setenv(variable, path, 1);
    if (auto* forget = reinterpret_cast<void (*)()>(::dlsym(handle_, "stand_in_forget"))) forget();
  }
  ~StandIn() {
    ::unsetenv(variable_);
    ::dlclose(handle_);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  void set(const char* name, unsigned long long value, int error = 0) {
    reinterpret_cast<void (*)(const char*, unsigned long long, int)>(::dlsym(handle_, "stand_in_set"))(name, value, error);
  }
  int started() const { return reinterpret_cast<int (*)()>(::dlsym(handle_, "stand_in_started"))(); }

 private:
  const char* variable_;
  void* handle_;
};

std::vector<std::string> codes(const std::vector<GpuWarning>& warnings) {
  std::vector<std::string> all;
  for (const GpuWarning& warning : warnings) all.push_back(warning.code);
  return all;
}

}  // namespace

TEST_CASE("NVML's answers are read, and what it does not answer is nothing", "[gpu_monitor]") {
  StandIn nvml("SLACKTIER_NVML", SLACKTIER_STAND_IN_NVML);
  {
    const OpenedMonitor opened = open_gpu_monitor(nvidia());
    INFO(opened.reason);
    REQUIRE(opened.monitor);
    CHECK(nvml.started() == 1);
    GpuReading reading = opened.monitor->read();
    CHECK_FALSE(reading.temperature_c);
    CHECK_FALSE(reading.throttle);
    CHECK_FALSE(reading.link_generation);
    nvml.set("temperature", 42);
    nvml.set("power", 123'456);
    nvml.set("power_limit", 700'000);
    nvml.set("sm_clock", 345);
    nvml.set("sm_clock_max", 1980);
    nvml.set("memory_clock", 3201);
    nvml.set("memory_clock_max", 3201, 15);  // an error: what it wrote does not count
    nvml.set("reasons", 0x1 | 0x4 | 0x40 | 0x1000);
    nvml.set("generation", 5);
    nvml.set("generation_max", 5);
    nvml.set("width", 8);
    nvml.set("width_max", 16);
    reading = opened.monitor->read();
    CHECK(reading.temperature_c == 42.0);
    CHECK(reading.power_w == 123.456);
    CHECK(reading.power_limit_w == 700.0);
    CHECK(reading.clock_mhz == 345u);
    CHECK(reading.clock_max_mhz == 1980u);
    CHECK(reading.memory_clock_mhz == 3201u);
    CHECK_FALSE(reading.memory_clock_max_mhz);
    CHECK(reading.throttle == std::vector<std::string>{"gpu_idle", "sw_power_cap", "hw_thermal_slowdown", "0x1000"});
    CHECK(reading.link_generation == 5u);
    CHECK(reading.link_lanes == 8u);
    CHECK(reading.link_lanes_max == 16u);
    const auto json = device_json(nvidia(), opened, reading, GpuReading());
    CHECK(json["profile"] == "h200");
    CHECK(json["before"]["power_w"] == 123.456);
    CHECK(json["before"]["pcie"]["width"] == 8);
    CHECK(json["before"]["throttle_reasons"].size() == 4);
    CHECK(json["before"]["memory_clock_max_mhz"].is_null());
    CHECK(json["after"]["clock_mhz"].is_null());
    CHECK_FALSE(json.contains("reason"));
  }
  CHECK(nvml.started() == 0);
}

TEST_CASE("without a management library there is a reason instead of readings", "[gpu_monitor]") {
  const auto refused = [](const DeviceFacts& facts) {
    const OpenedMonitor opened = open_gpu_monitor(facts);
    CHECK_FALSE(opened.monitor);
    const auto json = device_json(facts, opened, {}, {});
    if (facts.backend != "cpu") {
      CHECK(json["before"].is_null());
      CHECK(json["after"].is_null());
      CHECK(json["reason"] == opened.reason);
    }
    return opened.reason;
  };
  DeviceFacts cpu;
  cpu.backend = "cpu";
  CHECK(refused(cpu) == "the device is no GPU");
  CHECK(refused(nvidia("")).find("PCI address") != std::string::npos);
  ::setenv("SLACKTIER_NVML", "/nowhere/libnvidia-ml.so", 1);
  CHECK(refused(nvidia()).starts_with("NVML is not there: "));
  ::setenv("SLACKTIER_NVML", SLACKTIER_STAND_IN_ROCM_SMI, 1);
  CHECK(refused(nvidia()).find("nvmlInit_v2") != std::string::npos);
  ::unsetenv("SLACKTIER_NVML");
  StandIn nvml("SLACKTIER_NVML", SLACKTIER_STAND_IN_NVML);
  CHECK(refused(nvidia("0000:99:00.0")) == "NVML knows no GPU at 0000:99:00.0: Not Found");
  CHECK(nvml.started() == 0);
  nvml.set("init", 0, 9);
  CHECK(refused(nvidia()) == "NVML does not start: Driver Not Loaded");
}

TEST_CASE("ROCm SMI's answers are read, clocks and link from sysfs", "[gpu_monitor]") {
  DeviceFacts facts;
  facts.name = "AMD Instinct MI300X";
  facts.backend = "hip";
  facts.architecture = "gfx942:sramecc+:xnack-";
  facts.pci = "0000:c1:00.0";
  const ProcTree tree;
  const std::string folder = "/sys/bus/pci/devices/0000:c1:00.0/";
  tree.write(folder + "pp_dpm_sclk", "0: 132Mhz\n1: 1200Mhz *\n2: 2100Mhz\n");
  tree.write(folder + "pp_dpm_mclk", "0: 900Mhz\n1: 1300Mhz *\n");
  tree.write(folder + "current_link_speed", "16.0 GT/s PCIe\n");
  tree.write(folder + "max_link_speed", "32.0 GT/s PCIe\n");
  tree.write(folder + "current_link_width", "16\n");
  tree.write(folder + "max_link_width", "16\n");
  StandIn smi("SLACKTIER_ROCM_SMI", SLACKTIER_STAND_IN_ROCM_SMI);
  {
    const OpenedMonitor opened = open_gpu_monitor(facts, tree.root());
    INFO(opened.reason);
    REQUIRE(opened.monitor);
    const GpuReading reading = opened.monitor->read();
    CHECK(reading.temperature_c == 61.5);
    CHECK(reading.power_w == 412.0);
    CHECK(reading.power_limit_w == 750.0);
    CHECK(reading.clock_mhz == 1200u);
    CHECK(reading.clock_max_mhz == 2100u);
    CHECK(reading.memory_clock_mhz == 1300u);
    CHECK(reading.link_generation == 4u);
    CHECK(reading.link_generation_max == 5u);
    CHECK(reading.link_lanes == 16u);
    CHECK_FALSE(reading.throttle);
    CHECK(codes(gpu_warnings(platform_profile(facts), reading, reading)) == std::vector<std::string>{"gpu_link_low"});
  }
  CHECK(smi.started() == 0);
  facts.pci = "0000:c2:00.0";
  CHECK(open_gpu_monitor(facts, tree.root()).reason == "ROCm SMI knows no GPU at 0000:c2:00.0");
}

TEST_CASE("warnings name throttling, heat and a slow link, and nothing else", "[gpu_monitor]") {
  const DeviceFacts facts = nvidia();
  const PlatformProfile& h200 = platform_profile(facts);
  GpuReading good;
  good.temperature_c = 50;
  good.throttle = {"gpu_idle"};
  good.link_generation = good.link_generation_max = 5;
  good.link_lanes = good.link_lanes_max = 16;
  CHECK(gpu_warnings(h200, good, good).empty());
  CHECK(gpu_warnings(h200, {}, {}).empty());
  // A link that rests between runs is no slow link.
  GpuReading rests = good;
  rests.link_generation = 1;
  CHECK(gpu_warnings(h200, rests, good).empty());
  CHECK(gpu_warnings(h200, good, rests).empty());
  CHECK(codes(gpu_warnings(h200, rests, rests)) == std::vector<std::string>{"gpu_link_low"});
  CHECK(gpu_warnings(h200, rests, rests)[0].message.find("generation 1 of 5") != std::string::npos);
  GpuReading narrow = good;
  narrow.link_lanes = narrow.link_lanes_max = 8;
  CHECK(gpu_warnings(h200, narrow, narrow)[0].message.find("width 8 at most; h200 GPUs have 16") != std::string::npos);
  GpuReading slow = good;
  slow.throttle = {"sw_power_cap", "applications_clocks"};
  slow.temperature_c = 86;
  CHECK(codes(gpu_warnings(h200, good, slow)) == std::vector<std::string>{"gpu_throttled", "gpu_hot"});
  CHECK(gpu_warnings(h200, slow, good)[0].message.find("its clocks: sw_power_cap;") != std::string::npos);
}

TEST_CASE("another process on the GPU is a warning", "[gpu_monitor]") {
  StandIn nvml("SLACKTIER_NVML", SLACKTIER_STAND_IN_NVML);
  const OpenedMonitor opened = open_gpu_monitor(nvidia());
  REQUIRE(opened.monitor);
  const PlatformProfile profile = platform_profile(nvidia());
  CHECK_FALSE(opened.monitor->read().processes);
  nvml.set("processes", 1);
  const GpuReading alone = opened.monitor->read();
  CHECK(alone.processes == std::vector<std::uint64_t>{1000});
  CHECK(gpu_warnings(profile, alone, alone).empty());
  nvml.set("processes", 3);
  const auto warnings = gpu_warnings(profile, alone, opened.monitor->read());
  REQUIRE(codes(warnings) == std::vector<std::string>{"gpu_shared"});
  CHECK_THAT(warnings.front().message, contains_text("2 other processes work"));
}
