// Doubly linked lists over ids, each id in at most one: what a policy orders its rows by. Private to harness.
#pragma once

#include <cstdint>
#include <vector>

namespace slacktier {

class IdLists {
 public:
  IdLists(std::uint32_t ids, std::uint32_t lists) : ids_(ids), links_(ids + lists), sizes_(lists, 0), list_(ids, none) {
    for (std::uint32_t l = 0; l < lists; ++l) links_[ids + l] = {ids + l, ids + l};
  }

  static constexpr std::uint8_t none = 0xFF;
  std::uint8_t list_of(std::uint32_t id) const { return list_[id]; }
  std::uint32_t size(std::uint8_t list) const { return sizes_[list]; }
  std::uint32_t back(std::uint8_t list) const { return links_[ids_ + list].before; }  // of a list that is not empty
  void push_front(std::uint8_t list, std::uint32_t id) {
    const std::uint32_t head = ids_ + list, first = links_[head].after;
    links_[id] = {head, first};
    links_[head].after = links_[first].before = id;
    list_[id] = list;
    ++sizes_[list];
  }
  void remove(std::uint32_t id) {
    const auto [before, after] = links_[id];
    links_[before].after = after;
    links_[after].before = before;
    --sizes_[list_[id]];
    list_[id] = none;
  }
  void move_front(std::uint8_t list, std::uint32_t id) {
    remove(id);
    push_front(list, id);
  }
  std::uint32_t pop_back(std::uint8_t list) {
    const std::uint32_t id = back(list);
    remove(id);
    return id;
  }

 private:
  struct Links {
    std::uint32_t before = 0, after = 0;
  };
  std::uint32_t ids_;
  std::vector<Links> links_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint8_t> list_;
};

}  // namespace slacktier
