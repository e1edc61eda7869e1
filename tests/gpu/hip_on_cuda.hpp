// Included before all else when nvcc of CUDA 13 compiles HIP sources for NVIDIA with Debian's HIP 5.2.3 headers: gives back
// the CUDA 11 names and overloads that those still use.
#pragma once
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#undef cuCtxCreate
#define cuCtxCreate(ctx, flags, dev) cuCtxCreate_v4(ctx, nullptr, flags, dev)
struct slacktier_cudaDeviceProp : cudaDeviceProp {  // members that CUDA 13 dropped: read as 0
  int clockRate = 0, memoryClockRate = 0, computeMode = 0, kernelExecTimeoutEnabled = 0;
  int cooperativeMultiDeviceLaunch = 0;
};
#define cudaDeviceProp slacktier_cudaDeviceProp
#define cudaDevAttrCooperativeMultiDeviceLaunch cudaDevAttrCooperativeLaunch
inline cudaError_t cudaMemAdvise(const void* p, size_t n, cudaMemoryAdvise a, int dev) {
  return cudaMemAdvise(p, n, a, cudaMemLocation{dev < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, dev});
}
inline cudaError_t cudaMemPrefetchAsync(const void* p, size_t n, int dev, cudaStream_t s) {
  return cudaMemPrefetchAsync(p, n, cudaMemLocation{dev < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, dev}, 0,
                              s);
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t* f, const cudaGraphNode_t* t, size_t n) {
  return cudaGraphAddDependencies(g, f, t, nullptr, n);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t g, const cudaGraphNode_t* f, const cudaGraphNode_t* t, size_t n) {
  return cudaGraphRemoveDependencies(g, f, t, nullptr, n);
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t* f, cudaGraphNode_t* t, size_t* n) {
  return cudaGraphGetEdges(g, f, t, nullptr, n);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t d, cudaGraphNode_t* o, size_t* n) {
  return cudaGraphNodeGetDependencies(d, o, nullptr, n);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t d, cudaGraphNode_t* o, size_t* n) {
  return cudaGraphNodeGetDependentNodes(d, o, nullptr, n);
}
inline cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, cudaStreamCaptureStatus* st, unsigned long long* id,
                                               cudaGraph_t* g, const cudaGraphNode_t** d, size_t* n) {
  return cudaStreamGetCaptureInfo(s, st, id, g, d, nullptr, n);
}
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t* d, size_t n, unsigned fl) {
  return cudaStreamUpdateCaptureDependencies(s, d, nullptr, n, fl);
}
#if !defined(__CUDACC__)  // nvcc's headers have it
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphNode_t*, cudaGraphExecUpdateResult*) {
  return cudaErrorNotSupported;
}
#endif
// Not to be called: texture references and multi-device cooperative launch are gone from CUDA.
template <class T, int D, enum cudaTextureReadMode M>
struct texture {};
template <class... A>
inline cudaError_t cudaBindTexture(A&&...) {
  return cudaErrorNotSupported;
}
template <class... A>
inline cudaError_t cudaBindTexture2D(A&&...) {
  return cudaErrorNotSupported;
}
template <class... A>
inline cudaError_t cudaBindTextureToArray(A&&...) {
  return cudaErrorNotSupported;
}
template <class... A>
inline cudaError_t cudaUnbindTexture(A&&...) {
  return cudaErrorNotSupported;
}
template <class... A>
inline cudaError_t cudaGetTextureAlignmentOffset(A&&...) {
  return cudaErrorNotSupported;
}
template <class... A>
inline cudaError_t cudaLaunchCooperativeKernelMultiDevice(A&&...) {
  return cudaErrorNotSupported;
}
#if defined(__CUDACC__)
#include <hip/hip_runtime.h>
#else
#define __CUDACC__  // the headers hide graphs from other compilers
#include <hip/hip_runtime_api.h>
#undef __CUDACC__
#endif
// Declared for AMD only in 5.2.3.
inline hipError_t hipLaunchHostFunc(hipStream_t s, void (*fn)(void*), void* u) {
  return hipCUDAErrorTohipError(cudaLaunchHostFunc(s, fn, u));
}
