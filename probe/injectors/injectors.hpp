// The injectors there are.
#pragma once

#include <memory>

#include "probe/injector.hpp"

namespace slacktier {

std::unique_ptr<Injector> make_host_node_injector(Device& device);
std::unique_ptr<Injector> make_device_clock_injector(Device& device);

}  // namespace slacktier
