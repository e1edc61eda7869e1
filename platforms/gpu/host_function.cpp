#include <memory>

#include "platforms/gpu/runtime.hpp"

namespace slacktier::gpu::rt {

#if defined(SLACKTIER_GPU_HIP)

// In a capture the node is put into the graph by hand: Debian's libamdhip64 5.2.3 declares hipLaunchHostFunc but does not
// export it, and ROCm 7.0.0 refuses it there.
Error host_function(Stream stream, void (*function)(void*), void* user) {
  struct Call {
    void (*function)(void*);
    void* user;
  };
  if (!capturing(stream)) {
    auto call = std::make_unique<Call>(Call{function, user});
    const auto run = [](hipStream_t, hipError_t, void* raw) {
      const std::unique_ptr<Call> mine(static_cast<Call*>(raw));
      mine->function(mine->user);
    };
    const Error error = hipStreamAddCallback(stream, run, call.get(), 0);
    if (error == success) static_cast<void>(call.release());
    return error;
  }
  CaptureStatus status;
  unsigned long long id = 0;
  Graph graph = nullptr;
  const GraphNode* dependencies = nullptr;
  std::size_t n = 0;
  if (const Error error = hipStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies, &n); error != success)
    return error;
  hipHostNodeParams parameters{};
  parameters.fn = function;
  parameters.userData = user;
  GraphNode node = nullptr;
  if (const Error error = hipGraphAddHostNode(&node, graph, dependencies, n, &parameters); error != success) return error;
  return hipStreamUpdateCaptureDependencies(stream, &node, 1, hipStreamSetCaptureDependencies);
}

#else

Error host_function(Stream stream, void (*function)(void*), void* user) {
  return cudaLaunchHostFunc(stream, function, user);
}

#endif

}  // namespace slacktier::gpu::rt
