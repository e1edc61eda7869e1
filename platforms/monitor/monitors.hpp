#pragma once

#include "platforms/gpu_monitor.hpp"

namespace slacktier {

OpenedMonitor open_nvml(const std::string& pci);
OpenedMonitor open_rocm_smi(const std::string& pci, const std::string& root);

}  // namespace slacktier
