// Marks functions that both the host and kernels call.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define SLACKTIER_HOST_DEVICE __host__ __device__
#else
#define SLACKTIER_HOST_DEVICE
#endif
