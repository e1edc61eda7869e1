// A doubly linked list of slots in two arrays, for policies that keep an order. Private to tier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slacktier {

// Holds any of the slots [0, slots), each at most once; the front is the newest. All operations take constant time.
class SlotList {
 public:
  explicit SlotList(std::uint32_t slots) : links_(std::size_t{slots} + 1, Link{slots, slots}), end_(slots) {}

  std::uint32_t end() const { return end_; }  // what front, back, newer and older give past either end
  std::uint32_t front() const { return links_[end_].older; }
  std::uint32_t back() const { return links_[end_].newer; }
  std::uint32_t newer(std::uint32_t slot) const { return links_[slot].newer; }
  std::uint32_t size() const { return size_; }

  void push_front(std::uint32_t slot) {
    links_[slot] = {end_, front()};
    links_[links_[slot].older].newer = slot;
    links_[end_].older = slot;
    ++size_;
  }
  void remove(std::uint32_t slot) {
    links_[links_[slot].newer].older = links_[slot].older;
    links_[links_[slot].older].newer = links_[slot].newer;
    --size_;
  }
  void prefetch(std::uint32_t slot) const { __builtin_prefetch(&links_[slot], 1); }
  std::size_t bytes() const { return links_.size() * sizeof(Link); }

 private:
  // The sentinel's `older` is the front and its `newer` the back: the list is a ring through it.
  struct Link {
    std::uint32_t newer, older;
  };
  std::vector<Link> links_;
  std::uint32_t end_, size_ = 0;
};

}  // namespace slacktier
