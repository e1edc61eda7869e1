#include "platforms/gpu/gates.hpp"

#include <cstdint>

#include "platforms/futex.hpp"

namespace slacktier::gpu {
namespace {

// On a thread of the driver, where nothing else of this process's host functions runs meanwhile.
void wait_on_host(void* user) {
  const auto& signal = *static_cast<const Signal*>(user);
  while (signal.word.load(std::memory_order_acquire) == 0) futex_wait(signal.word, 0);
}

#if !defined(SLACKTIER_GPU_HIP)

// libcuda is not linked: the runtime finds its functions.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) {
    rt::last_error();
    return nullptr;
  }
  return reinterpret_cast<Function>(found);
}

using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
WaitValue wait_value_function() {
  static const auto function = driver_function<WaitValue>("cuStreamWaitValue32");
  return function;
}

using WriteValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
WriteValue write_value_function() {
  static const auto function = driver_function<WriteValue>("cuStreamWriteValue32");
  return function;
}

#endif

}  // namespace

#if defined(SLACKTIER_GPU_HIP)

// hipStreamWaitValue32 cannot be captured on the releases that this binds to.
bool wait_value_supported(int) { return false; }

#else

bool wait_value_supported(int) {
  const WaitValue wait = wait_value_function();
  const WriteValue write = write_value_function();
  if (wait == nullptr || write == nullptr) return false;
  // A word that is open already: what counts is whether both kinds of stream take the operation.
  std::uint32_t* word = nullptr;
  cudaStream_t stream = nullptr;
  bool works = cudaMalloc(reinterpret_cast<void**>(&word), sizeof *word) == cudaSuccess &&
               rt::create_stream(&stream) == cudaSuccess && cudaMemsetAsync(word, 1, sizeof *word, stream) == cudaSuccess &&
               wait(stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS &&
               cudaStreamSynchronize(stream) == cudaSuccess;
  if (works && rt::begin_capture(stream) == cudaSuccess) {
    works = wait(stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS &&
            write(stream, reinterpret_cast<CUdeviceptr>(word), 2, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    works = cudaStreamEndCapture(stream, &graph) == cudaSuccess && works && rt::instantiate(&exec, graph) == cudaSuccess &&
            cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
    if (exec != nullptr) cudaGraphExecDestroy(exec);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  if (stream != nullptr) cudaStreamDestroy(stream);
  cudaFree(word);
  rt::last_error();
  return works;
}

#endif

rt::Error enqueue_gate(Gate gate, rt::Stream stream, Signal& signal, std::uint32_t* word) {
  switch (gate) {
    case Gate::spin:
      launch_gate(stream, word);
      return rt::last_error();
    case Gate::host_node:
      return rt::host_function(stream, wait_on_host, &signal);
    case Gate::wait_value:
#if !defined(SLACKTIER_GPU_HIP)
      // Driver and runtime number these errors alike.
      return static_cast<cudaError_t>(
          wait_value_function()(stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ));
#endif
      break;
  }
  return rt::invalid_value;
}

rt::Error enqueue_store(Gate gate, rt::Stream stream, std::uint32_t* word, std::uint32_t value) {
#if !defined(SLACKTIER_GPU_HIP)
  // The default flags put a system-wide fence before the store.
  if (gate == Gate::wait_value)
    return static_cast<cudaError_t>(
        write_value_function()(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WRITE_VALUE_DEFAULT));
#endif
  static_cast<void>(gate);
  launch_write(stream, word, value);
  return rt::last_error();
}

void force_open(Signal& signal) noexcept {
  signal.word.store(1, std::memory_order_release);
  futex_wake_all(&signal.word);
}

const char* to_string(Gate gate) {
  switch (gate) {
    case Gate::spin:
      return "spin";
    case Gate::wait_value:
      return "wait-value";
    case Gate::host_node:
      return "host-node";
  }
  return "unknown";
}

}  // namespace slacktier::gpu
