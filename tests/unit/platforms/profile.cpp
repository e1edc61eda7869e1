#include "platforms/profile.hpp"

#include <cstdint>
#include <set>
#include <string>

#include "tests/catch.hpp"

using namespace slacktier;

namespace {

DeviceFacts facts_of(const std::string& backend, const std::string& name, const std::string& architecture) {
  DeviceFacts facts;
  facts.backend = backend;
  facts.name = name;
  facts.architecture = architecture;
  return facts;
}

}  // namespace

TEST_CASE("a profile is picked by what the device is", "[profile]") {
  const auto name = [](const DeviceFacts& facts) { return std::string(platform_profile(facts).name); };
  CHECK(name(facts_of("cuda", "NVIDIA H200", "90")) == "h200");
  CHECK(name(facts_of("cuda", "NVIDIA H200 NVL", "90")) == "h200");
  CHECK(name(facts_of("hip", "NVIDIA H200", "")) == "h200");  // HIP's host side on an NVIDIA GPU
  CHECK(name(facts_of("cuda", "NVIDIA GH200 480GB", "90")) == "generic");
  CHECK(name(facts_of("cuda", "NVIDIA H100 80GB HBM3", "90")) == "generic");
  CHECK(name(facts_of("cuda", "NVIDIA GB10", "121")) == "gb10");
  CHECK(name(facts_of("hip", "AMD Instinct MI300X", "gfx942:sramecc+:xnack-")) == "mi300x");
  CHECK(name(facts_of("hip", "AMD Instinct MI250X", "gfx90a")) == "generic");
  CHECK(name(facts_of("cpu", "cpu", "")) == "generic");
}

TEST_CASE("every profile names a gate and why", "[profile]") {
  std::set<std::string> names;
  for (const PlatformProfile* profile : platform_profiles()) {
    INFO(profile->name);
    CHECK(names.insert(std::string(profile->name)).second);
    CHECK((profile->gate == "spin" || profile->gate == "wait-value" || profile->gate == "host-node"));
    CHECK_FALSE(profile->gate_from.empty());
  }
  CHECK(names.size() >= 4);
  CHECK(platform_profiles().back()->name == "generic");
}
