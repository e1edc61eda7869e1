// The GPU runtime's host interface under one set of names: rt::X is cudaX or hipX.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#if defined(SLACKTIER_GPU_HIP)
#include <hip/hip_runtime_api.h>
#define SLACKTIER_RT(name) hip##name
#else
#include <cuda.h>
#include <cuda_runtime_api.h>
#define SLACKTIER_RT(name) cuda##name
#endif

namespace slacktier::gpu::rt {

#if defined(SLACKTIER_GPU_HIP)
inline constexpr const char* backend = "hip";
#else
inline constexpr const char* backend = "cuda";
#endif

#if defined(SLACKTIER_GPU_HIP)
using DeviceAttribute = hipDeviceAttribute_t;
#else
using DeviceAttribute = cudaDeviceAttr;
#endif
using Error = SLACKTIER_RT(Error_t);
using Stream = SLACKTIER_RT(Stream_t);
using Event = SLACKTIER_RT(Event_t);
using Graph = SLACKTIER_RT(Graph_t);
using GraphExec = SLACKTIER_RT(GraphExec_t);
using GraphNode = SLACKTIER_RT(GraphNode_t);
using GraphNodeType = SLACKTIER_RT(GraphNodeType);
using CaptureStatus = SLACKTIER_RT(StreamCaptureStatus);

inline constexpr Error success = SLACKTIER_RT(Success);
inline constexpr Error not_ready = SLACKTIER_RT(ErrorNotReady);
inline constexpr Error out_of_memory = SLACKTIER_RT(ErrorMemoryAllocation);
inline constexpr Error invalid_value = SLACKTIER_RT(ErrorInvalidValue);

#define SLACKTIER_RT_FUNCTION(name)                           \
  template <class... A>                                       \
  inline Error name(A&&... arguments) {                       \
    return SLACKTIER_RT(name)(std::forward<A>(arguments)...); \
  }
SLACKTIER_RT_FUNCTION(GetDeviceCount)
SLACKTIER_RT_FUNCTION(SetDevice)
SLACKTIER_RT_FUNCTION(SetDeviceFlags)
SLACKTIER_RT_FUNCTION(DriverGetVersion)
SLACKTIER_RT_FUNCTION(RuntimeGetVersion)
SLACKTIER_RT_FUNCTION(DeviceGetAttribute)
SLACKTIER_RT_FUNCTION(DeviceGetPCIBusId)
SLACKTIER_RT_FUNCTION(MemGetInfo)
SLACKTIER_RT_FUNCTION(Malloc)
SLACKTIER_RT_FUNCTION(Free)
SLACKTIER_RT_FUNCTION(DeviceCanAccessPeer)
SLACKTIER_RT_FUNCTION(DeviceEnablePeerAccess)
SLACKTIER_RT_FUNCTION(HostUnregister)
SLACKTIER_RT_FUNCTION(HostGetDevicePointer)
SLACKTIER_RT_FUNCTION(MemcpyAsync)
SLACKTIER_RT_FUNCTION(MemsetAsync)
SLACKTIER_RT_FUNCTION(StreamCreateWithFlags)
SLACKTIER_RT_FUNCTION(StreamDestroy)
SLACKTIER_RT_FUNCTION(StreamSynchronize)
SLACKTIER_RT_FUNCTION(StreamQuery)
SLACKTIER_RT_FUNCTION(StreamWaitEvent)
SLACKTIER_RT_FUNCTION(StreamIsCapturing)
SLACKTIER_RT_FUNCTION(StreamEndCapture)
SLACKTIER_RT_FUNCTION(EventCreateWithFlags)
SLACKTIER_RT_FUNCTION(EventDestroy)
SLACKTIER_RT_FUNCTION(EventRecord)
SLACKTIER_RT_FUNCTION(EventQuery)
SLACKTIER_RT_FUNCTION(GraphLaunch)
SLACKTIER_RT_FUNCTION(GraphDestroy)
SLACKTIER_RT_FUNCTION(GraphExecDestroy)
SLACKTIER_RT_FUNCTION(GraphGetNodes)
SLACKTIER_RT_FUNCTION(GraphNodeGetType)
#undef SLACKTIER_RT_FUNCTION

inline Error last_error() { return SLACKTIER_RT(GetLastError)(); }
inline const char* text(Error error) { return SLACKTIER_RT(GetErrorString)(error); }

// Where names or parameters differ.
inline Error begin_capture(Stream stream) {
  return SLACKTIER_RT(StreamBeginCapture)(stream, SLACKTIER_RT(StreamCaptureModeThreadLocal));
}
inline Error create_stream(Stream* stream) { return StreamCreateWithFlags(stream, SLACKTIER_RT(StreamNonBlocking)); }
inline Error create_event(Event* event) { return EventCreateWithFlags(event, SLACKTIER_RT(EventDisableTiming)); }
inline Error copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  return MemcpyAsync(to, from, bytes, SLACKTIER_RT(MemcpyDefault), stream);
}
inline Error register_host(void* base, std::size_t bytes) {
  return SLACKTIER_RT(HostRegister)(base, bytes, SLACKTIER_RT(HostRegisterMapped) | SLACKTIER_RT(HostRegisterPortable));
}
inline bool capturing(Stream stream) {
  CaptureStatus status = SLACKTIER_RT(StreamCaptureStatusNone);
  return StreamIsCapturing(stream, &status) == success && status != SLACKTIER_RT(StreamCaptureStatusNone);
}

#if defined(SLACKTIER_GPU_HIP)
inline Error instantiate(GraphExec* exec, Graph graph) { return hipGraphInstantiate(exec, graph, nullptr, nullptr, 0); }
inline Error upload(GraphExec, Stream) { return success; }
#else
inline Error instantiate(GraphExec* exec, Graph graph) { return cudaGraphInstantiate(exec, graph, 0); }
inline Error upload(GraphExec exec, Stream stream) { return cudaGraphUpload(exec, stream); }
#endif

// The number of the capture that records `stream`.
inline Error capture_id(Stream stream, unsigned long long* id) {
  CaptureStatus status;
#if defined(SLACKTIER_GPU_HIP)
  return hipStreamGetCaptureInfo(stream, &status, id);
#else
  return cudaStreamGetCaptureInfo(stream, &status, id);
#endif
}

// Calls `function(user)` in stream order; a host node in a capture.
Error host_function(Stream stream, void (*function)(void*), void* user);

}  // namespace slacktier::gpu::rt
