// A device in modelled time against closed forms of queues.
#include "harness/virtual_disk.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("one queue is a single server, first in, first out", "[virtual_disk]") {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    VirtualDisk disk(0.75, 0);
    disk.reset();
    std::vector<double> at, pages;
    double now = 0;
    for (int i = 0; i < 60; ++i) {
      now += static_cast<double>(random() % 400) / 10;
      at.push_back(now);
      pages.push_back(static_cast<double>(random() % 60));
      disk.submit(0, at.back(), pages.back());
    }
    double free_at = 0;  // Lindley's recursion
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (pages[i] == 0) {
        CHECK(disk.done(i) == at[i]);
        continue;
      }
      free_at = std::max(free_at, at[i]) + 0.75 * pages[i];
      CHECK(disk.done(i) == Approx(free_at).epsilon(1e-9));
    }
  }
}

TEST_CASE("random arrivals wait as Pollaczek and Khinchine say", "[virtual_disk]") {
  // M/D/1: mean wait = rho * service / (2 (1 - rho)).
  constexpr double service = 1, rho = 0.5;
  std::mt19937_64 random(7);
  double wait = 0;
  std::size_t n = 0;
  for (int run = 0; run < 40; ++run) {
    VirtualDisk disk(service, 0);
    disk.reset();
    std::vector<double> at;
    double now = 0;
    for (int i = 0; i < 500; ++i) {
      now += -std::log((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53) * service / rho;
      at.push_back(now);
      disk.submit(0, now, 1);
    }
    for (std::size_t i = 100; i < at.size(); ++i, ++n) wait += disk.done(i) - at[i] - service;
  }
  CHECK(wait / static_cast<double>(n) == Approx(rho * service / (2 * (1 - rho))).epsilon(0.08));
}

TEST_CASE("queues share the device fairly, and no time is lost", "[virtual_disk]") {
  VirtualDisk disk(2, 0);
  disk.reset();
  const std::size_t small = disk.submit(0, 0, 10), large = disk.submit(1, 0, 30);
  CHECK(disk.done(small) == Approx(2 * 2 * 10));
  CHECK(disk.done(large) == Approx(2 * 40));
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const double share = static_cast<double>(random() % 100) / 100;
    VirtualDisk any(0.5, share);
    any.reset();
    double work = 0, last = 0;
    std::vector<std::size_t> batches;
    for (int i = 0; i < 12; ++i) {
      const auto pages = static_cast<double>(1 + random() % 100);
      work += 0.5 * pages;
      batches.push_back(any.submit(static_cast<std::uint32_t>(random() % 4), 5, pages));
    }
    for (const std::size_t b : batches) last = std::max(last, any.done(b));
    CHECK(last == Approx(5 + work));
  }
}

TEST_CASE("a queue's next batch overtakes by its share", "[virtual_disk]") {
  VirtualDisk disk(1, 0.25);
  disk.reset();
  const std::size_t first = disk.submit(0, 0, 100), second = disk.submit(0, 0, 100);
  CHECK(disk.done(first) == Approx(125));
  CHECK(disk.done(second) == Approx(200));
  disk.reset();
  const std::size_t again = disk.submit(0, 3, 100);
  CHECK(disk.done(again) == Approx(103));
}
