// Finding the HIP runtime and the plug-in that is built for it.
#if defined(SLACKTIER_HIP)

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platforms/backend.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

#if !defined(SLACKTIER_HIP_ON_NVIDIA)
// Makes the runtime's symbols visible to the plug-in, which names no runtime itself: the one that this process uses already
// (an engine's), else the newest that is installed.
void bind_runtime() {
  const std::vector<std::string> installed = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                              "/opt/rocm/lib/libamdhip64.so"};
  std::vector<std::string> names = installed;
  if (const char* wanted = std::getenv("SLACKTIER_HIP_RUNTIME")) names = {wanted};
  for (const int flags : {RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD, RTLD_NOW | RTLD_GLOBAL})
    for (const std::string& name : names)
      if (::dlopen(name.c_str(), flags) != nullptr) return;
  throw EnvironmentError(
      fmt::format("hip: there is no HIP runtime here ({}): install ROCm's hip runtime, name its libamdhip64.so in "
                  "SLACKTIER_HIP_RUNTIME, or use --device cpu",
                  fmt::join(names, ", ")));
}
#endif

std::string plugin_path() {
  if (const char* wanted = std::getenv("SLACKTIER_HIP_PLUGIN")) return wanted;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / "libslacktier_hip.so").string();
}

// Stays loaded: devices live in it.
const BackendPlugin& load_plugin() {
#if !defined(SLACKTIER_HIP_ON_NVIDIA)
  bind_runtime();
#endif
  const std::string path = plugin_path();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw EnvironmentError(
        fmt::format("hip: the plug-in cannot be loaded: {}. It belongs beside the program; SLACKTIER_HIP_PLUGIN "
                    "names another place",
                    ::dlerror()));
  const auto entry = reinterpret_cast<BackendEntry>(::dlsym(library, "slacktier_backend"));
  if (entry == nullptr || entry()->layout != plugin_layout())
    throw EnvironmentError(fmt::format("hip: {} comes from another build than this program: build both together", path));
  return *entry();
}

}  // namespace

std::unique_ptr<Device> open_hip_device(std::string_view index, const DeviceOptions& options) {
  static const BackendPlugin& plugin = load_plugin();
  return plugin.open(index, options);
}

}  // namespace slacktier

#endif
