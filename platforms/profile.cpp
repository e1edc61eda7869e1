#include "platforms/profile.hpp"

#include <array>

#include "platforms/profiles/profiles.hpp"

namespace slacktier {
namespace {

// One line a profile; the last one fits all.
constexpr std::array profiles{&h200_profile, &mi300x_profile, &gb10_profile, &generic_profile};

}  // namespace

std::span<const PlatformProfile* const> platform_profiles() { return profiles; }

const PlatformProfile& platform_profile(const DeviceFacts& facts) {
  for (const PlatformProfile* profile : profiles)
    if (profile->fits(facts)) return *profile;
  return generic_profile;
}

}  // namespace slacktier
