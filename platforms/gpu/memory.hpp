// Memory of a GPU, and host memory that it can reach.
#pragma once

#include <memory>
#include <string>

#include "platforms/gpu/state.hpp"

namespace slacktier::gpu {

// Throws EnvironmentError, with what was asked and what is free, when device memory runs out.
std::unique_ptr<Buffer> make_device_buffer(std::shared_ptr<DeviceState> device, std::size_t bytes);

// Memory of the device named `peer`, mapped into `device`. Errors as Device::allocate_peer.
std::unique_ptr<Buffer> make_peer_buffer(std::shared_ptr<DeviceState> device, const std::string& peer, std::size_t bytes);

// Host memory mapped at its exact size, brought in by all CPUs, and registered with the device in chunks: allocators of
// pinned memory may round up to a power of two. Throws EnvironmentError when the driver refuses to register it.
std::unique_ptr<Buffer> make_host_buffer(std::shared_ptr<DeviceState> device, std::size_t bytes);

}  // namespace slacktier::gpu
