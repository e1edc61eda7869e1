// Opening a GPU, and saying in words why it cannot be opened.
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "platforms/backend.hpp"
#include "platforms/error.hpp"
#include "platforms/gpu/device.hpp"
#include "platforms/gpu/gates.hpp"

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

Gate choose_gate(const std::string& wanted, int index) {
  if (wanted == "auto" || wanted == "spin") return Gate::spin;
  if (wanted == "host-node") return Gate::host_node;
  if (wanted != "wait-value") throw UsageError(fmt::format("--gate {}: use auto, host-node, wait-value or spin", wanted));
  if (!wait_value_supported(index))
    throw EnvironmentError(
        fmt::format("--gate wait-value: {}:{} cannot wait on memory words in captured streams; use spin or "
                    "host-node",
                    rt::backend, index));
  return Gate::wait_value;
}

Work choose_work(const std::string& wanted) {
  if (wanted == "spin") return Work::spin;
  if (wanted == "gemm") return Work::gemm;
  if (wanted == "stream") return Work::stream;
  throw UsageError(fmt::format("--work {}: use spin, gemm or stream", wanted));
}

std::uint32_t multiprocessors_of(int index) {
#if defined(SLACKTIER_GPU_HIP)
  constexpr auto which = hipDeviceAttributeMultiprocessorCount;
#else
  constexpr auto which = cudaDevAttrMultiProcessorCount;
#endif
  int count = 0;
  if (rt::DeviceGetAttribute(&count, which, index) != rt::success) rt::last_error();
  return count > 0 ? static_cast<std::uint32_t>(count) : 1;
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
  state->gate = choose_gate(options.gate, index);
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
