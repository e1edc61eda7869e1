#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/planner.hpp"

namespace slacktier {
namespace {

using Shares = std::vector<double>;

// Ways to split the cache among `n` layers, as shares of the budget that add up to 1; all zero: no cache.
std::vector<Shares> splits(std::size_t n) {
  if (n == 0) return {{}};
  std::vector<Shares> all{Shares(n, 0.0)};
  if (n == 1) {
    all.push_back({1.0});
  } else if (n == 2) {
    for (int i = 0; i <= 8; ++i) all.push_back({i / 8.0, (8 - i) / 8.0});
  } else if (n == 3) {
    for (int i = 0; i <= 4; ++i)
      for (int j = 0; i + j <= 4; ++j) all.push_back({i / 4.0, j / 4.0, (4 - i - j) / 4.0});
  } else {
    for (std::size_t first = 1; first <= n; ++first) {
      Shares shares(n, 0.0);
      std::fill_n(shares.begin(), first, 1.0 / static_cast<double>(first));
      all.push_back(shares);
    }
  }
  return all;
}

bool has_room(const PlanProblem& problem, const std::vector<LayerChoice>& layers) {
  std::vector<double> held(problem.residents.size(), 0.0);
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (!layers[l].reads) held[layers[l].offer] += problem.layers[l].table_bytes;
  for (std::size_t p = 0; p < held.size(); ++p)
    if (problem.residents[p].capacity_bytes > 0 && held[p] > problem.residents[p].capacity_bytes) return false;
  return true;
}

// Layers on one source share an offer: two loads on the same disks were measured together or not at all.
bool one_offer_a_source(const PlanProblem& problem, const std::vector<LayerChoice>& layers) {
  for (const LayerChoice& a : layers)
    for (const LayerChoice& b : layers)
      if (a.reads && b.reads && a.offer != b.offer && problem.reads[a.offer].source == problem.reads[b.offer].source)
        return false;
  return true;
}

std::vector<std::vector<LayerChoice>> assignments(const PlanProblem& problem) {
  const std::size_t n = problem.layers.size(), places = problem.residents.size(), offers = places + problem.reads.size();
  const auto choice = [&](std::size_t offer) {
    return offer < places ? LayerChoice{false, offer, 0} : LayerChoice{true, offer - places, 0};
  };
  std::vector<std::vector<LayerChoice>> all;
  if (n <= 4) {
    std::vector<std::size_t> digits(n, 0);
    while (true) {
      std::vector<LayerChoice> layers;
      for (const std::size_t digit : digits) layers.push_back(choice(digit));
      all.push_back(layers);
      std::size_t place = 0;
      while (place < n && ++digits[place] == offers) digits[place++] = 0;
      if (place == n) break;
    }
  } else {
    for (std::size_t resident = 0; resident < places; ++resident) {
      all.emplace_back(n, choice(resident));
      for (std::size_t offer = places; offer < offers; ++offer)
        for (std::size_t cut = 0; cut < n; ++cut) {
          if (cut == 0 && resident > 0) continue;  // nothing is resident: the same for every place
          std::vector<LayerChoice> layers(n, choice(offer));
          std::fill_n(layers.begin(), cut, choice(resident));
          all.push_back(layers);
        }
    }
  }
  return all;
}

}  // namespace

std::vector<Candidate> candidates(const PlanProblem& problem) {
  std::vector<Candidate> all;
  for (const std::vector<LayerChoice>& layers : assignments(problem)) {
    if (!has_room(problem, layers) || !one_offer_a_source(problem, layers)) continue;
    std::vector<std::size_t> reading;
    for (std::size_t l = 0; l < layers.size(); ++l)
      if (layers[l].reads) reading.push_back(l);
    std::vector<Shares> ways = splits(reading.size());
    if (!(problem.cache_rows > 0)) ways.resize(1);
    // Where rows lie in memory does not depend on who owns them.
    const std::size_t maps = reading.empty() ? 1 : problem.shard_maps.size();
    for (std::size_t map = 0; map < maps; ++map)
      for (const Shares& shares : ways) {
        Candidate candidate{map, layers};
        for (std::size_t i = 0; i < reading.size(); ++i)
          candidate.layers[reading[i]].cache_rows = std::round(problem.cache_rows * shares[i]);
        all.push_back(candidate);
      }
  }
  return all;
}

}  // namespace slacktier
