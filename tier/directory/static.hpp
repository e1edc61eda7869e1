// A fixed hot set: holds the rows it was given, hottest first, and nothing else; no row enters on a miss.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tier/directory/direct.hpp"

namespace slacktier {

class StaticPolicy {
 public:
  static constexpr bool fixed = true, learns_late = true;

  explicit StaticPolicy(std::uint32_t) {}

  void begin_step() {}
  void prefetch(std::uint32_t) const {}
  void hit(std::uint32_t) {}
  void reserve(std::uint32_t) {}
  void insert(std::uint32_t, std::uint32_t) { ++held_; }
  // Asked only when the cache shrinks. Rows came in order of their heat, into slots in order.
  std::uint32_t victim(const std::uint32_t*) { return held_ > 0 ? --held_ : no_slot; }
  std::size_t bytes() const { return 0; }

 private:
  std::uint32_t held_ = 0;
};

}  // namespace slacktier
