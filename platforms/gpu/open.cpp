// Opening a GPU, and saying in words why it cannot be opened.
#include <cctype>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "platforms/backend.hpp"
#include "platforms/error.hpp"
#include "platforms/gpu/device.hpp"
#include "platforms/gpu/gates.hpp"
#include "platforms/profile.hpp"

namespace slacktier {
namespace gpu {
namespace {

#if defined(SLACKTIER_GPU_HIP)
constexpr const char* maker = "AMD";
constexpr const char* driver_hint = "the amdgpu driver (/dev/kfd, and the group 'render')";
constexpr const char* archs_option = "SLACKTIER_HIP_ARCHS";
#else
constexpr const char* maker = "NVIDIA";
constexpr const char* driver_hint = "the NVIDIA driver (nvidia-smi shows it; in a container, start it with GPUs)";
constexpr const char* archs_option = "SLACKTIER_CUDA_ARCHS";
#endif

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

void require_device(int index) {
  int driver = 0, runtime = 0;
  rt::RuntimeGetVersion(&runtime);
  if (rt::DriverGetVersion(&driver) != rt::success || driver == 0) {
    rt::last_error();
    throw EnvironmentError(fmt::format("{}:{}: there is no {} driver here: install {}, or use --device cpu", rt::backend,
                                       index, maker, driver_hint));
  }
  int devices = 0;
  const rt::Error error = rt::GetDeviceCount(&devices);
  rt::last_error();
#if !defined(SLACKTIER_GPU_HIP)
  if (error == cudaErrorInsufficientDriver)
    throw EnvironmentError(
        fmt::format("cuda:{}: the driver is too old: it is made for CUDA {}, this program for CUDA {}. Update "
                    "the driver, or build with a toolkit not newer than it",
                    index, version_text(driver), version_text(runtime)));
#endif
  if (error != rt::success || devices == 0)
    throw EnvironmentError(fmt::format("{}:{}: no {} GPU can be used: {}. It takes {}; or use --device cpu", rt::backend,
                                       index, maker, error == rt::success ? "none is there" : rt::text(error), driver_hint));
  if (index >= devices)
    throw EnvironmentError(fmt::format("{}:{}: there {} {} GPU{}, {}:0{}", rt::backend, index, devices == 1 ? "is" : "are",
                                       devices, devices == 1 ? "" : "s", rt::backend,
                                       devices == 1 ? "" : fmt::format(" to {}:{}", rt::backend, devices - 1)));
}

Gate parse_gate(const std::string& name, const std::string& where) {
  for (const Gate gate : {Gate::spin, Gate::wait_value, Gate::host_node})
    if (name == to_string(gate)) return gate;
  throw UsageError(fmt::format("{} {}: use auto, host-node, wait-value or spin", where, name));
}

// Sets the state's gate, and what it rests on.
void choose_gate(DeviceState& state, const DeviceOptions& options, const DeviceFacts& facts) {
  const bool chosen = options.gate != "auto";
  const bool measured = !chosen && !options.measured_gate.empty();
  if (chosen) {
    state.gate = parse_gate(options.gate, "--gate");
    state.gate_from = "asked for";
  } else if (measured) {
    state.gate = parse_gate(options.measured_gate, options.measured_from + ": default_gate");
    state.gate_from = "measured: " + options.measured_from;
  } else {
    const PlatformProfile& profile = platform_profile(facts);
    state.gate = parse_gate(std::string(profile.gate), "profile");
    state.gate_from = fmt::format("profile {}: {}", profile.name, profile.gate_from);
  }
  if (state.gate != Gate::wait_value || wait_value_supported(state.index)) return;
  const std::string problem =
      fmt::format("{} cannot wait on memory words in captured streams; use spin or host-node", state.name);
  if (chosen) throw EnvironmentError("--gate wait-value: " + problem);
  if (measured) throw EnvironmentError(options.measured_from + ": default_gate wait-value: " + problem);
  state.gate = Gate::spin;
  state.gate_from += ", but " + state.name + " cannot wait on memory words";
}

Work choose_work(const std::string& wanted) {
  if (wanted == "spin") return Work::spin;
  if (wanted == "gemm") return Work::gemm;
  if (wanted == "stream") return Work::stream;
  throw UsageError(fmt::format("--work {}: use spin, gemm or stream", wanted));
}

int attribute(rt::DeviceAttribute which, int index) {
  int value = 0;
  if (rt::DeviceGetAttribute(&value, which, index) == rt::success) return value;
  rt::last_error();
  return 0;
}

std::uint32_t multiprocessors_of(int index) {
#if defined(SLACKTIER_GPU_HIP)
  constexpr auto which = hipDeviceAttributeMultiprocessorCount;
#else
  constexpr auto which = cudaDevAttrMultiProcessorCount;
#endif
  const int count = attribute(which, index);
  return count > 0 ? static_cast<std::uint32_t>(count) : 1;
}

bool shares_host_memory(int index) {
#if defined(SLACKTIER_GPU_HIP)
  return attribute(hipDeviceAttributeIntegrated, index) != 0;
#else
  return attribute(cudaDevAttrIntegrated, index) != 0;
#endif
}

// As sysfs writes it: lower case.
std::string pci_of(int index) {
  char text[32] = {};
  if (rt::DeviceGetPCIBusId(text, static_cast<int>(sizeof text - 1), index) != rt::success) {
    rt::last_error();
    return {};
  }
  std::string address = text;
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return address;
}

struct Properties {
  std::string product, arch;
};

Properties properties_of(int index) {
#if defined(SLACKTIER_GPU_HIP)
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, index) != hipSuccess) return {"unknown", "unknown"};
  return {properties.name, properties.gcnArchName};
#else
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return {"unknown", "unknown"};
  return {properties.name, fmt::format("{}{}", properties.major, properties.minor)};
#endif
}

}  // namespace

std::unique_ptr<Device> open(std::string_view index_text, const DeviceOptions& options) {
  const int index = parse_index(index_text);
  const Work work = choose_work(options.work);
  // Kernels are loaded when the device is opened: what loads one while a gate is closed would wait for that gate.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  require_device(index);

  auto state = std::make_shared<DeviceState>();
  state->index = index;
  state->name = fmt::format("{}:{}", rt::backend, index);
  const Properties properties = properties_of(index);
  state->product = properties.product;
  state->work = work;
  state->enter();
  // Waiting threads leave the CPU to the tier's.
  if (rt::SetDeviceFlags(SLACKTIER_RT(DeviceScheduleBlockingSync) | SLACKTIER_RT(DeviceMapHost)) != rt::success)
    rt::last_error();
  if (const rt::Error error = rt::Free(nullptr); error != rt::success) {
    rt::last_error();
    throw EnvironmentError(fmt::format("{} ({}) cannot be opened: {}", state->name, state->product, rt::text(error)));
  }
  if (const int error = kernels_loadable(); error != 0) {
    rt::last_error();
    throw EnvironmentError(fmt::format(
        "{} ({}): this program has no code for its architecture {} ({}): build it with -D{}={}", state->name, state->product,
        properties.arch, rt::text(static_cast<rt::Error>(error)), archs_option, properties.arch));
  }
  state->architecture = properties.arch;
  state->pci = pci_of(index);
  state->unified_memory = shares_host_memory(index);
  DeviceFacts facts;
  facts.name = state->product;
  facts.backend = rt::backend;
  facts.architecture = state->architecture;
  choose_gate(*state, options, facts);
  state->multiprocessors = multiprocessors_of(index);
  int driver = 0, runtime = 0;
  rt::DriverGetVersion(&driver);
  rt::RuntimeGetVersion(&runtime);
  std::size_t free = 0, total = 0;
  rt::MemGetInfo(&free, &total);
  return std::make_unique<GpuDevice>(
      state, fmt::format("{} {}, driver for {}, architecture {}, {} multiprocessors, {:.1f} GiB", rt::backend,
                         version_text(runtime), version_text(driver), properties.arch, state->multiprocessors,
                         static_cast<double>(total) / (std::size_t{1} << 30)));
}

}  // namespace gpu

#if defined(SLACKTIER_GPU_HIP)
std::unique_ptr<Device> open_hip_gpu(std::string_view index, const DeviceOptions& options) {
#else
std::unique_ptr<Device> open_cuda_device(std::string_view index, const DeviceOptions& options) {
#endif
  return gpu::open(index, options);
}

}  // namespace slacktier
