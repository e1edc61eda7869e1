#include "harness/generator/tokens.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace slacktier::generator {
namespace {

constexpr std::uint64_t kStep = 0xD1B54A32D192ED03u, kGolden = 0x9E3779B97F4A7C15u;
constexpr std::uint32_t kFirstId = 3, kIds = 127'997;  // ordinary ids, a prime number of them: [3, 128000)
constexpr std::uint32_t kPairBuckets = 1u << 16;
constexpr double kLongestCopy = 3000, kNearest = 8;  // tokens

double power(double u, double exponent) { return std::pow(u, exponent); }

}  // namespace

Random::Random(std::uint64_t seed) : a_(scramble(seed + kGolden)), b_(scramble(a_ + kGolden) | 1) {}

std::uint64_t Random::bits() {
  std::uint64_t a = a_;
  const std::uint64_t b = b_;
  a_ = b;
  a ^= a << 23;
  b_ = a ^ b ^ (a >> 17) ^ (b >> 26);
  return b_ + b;
}

double Random::normal() {
  const double u = uniform(), v = uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

TokenProcess::TokenProcess(const Profile& profile, std::uint64_t seed)
    : salt_(profile.salt),
      random_(seed ^ (salt_ << 32)),
      rank_((1u << 16) + 1),
      ones_(kFirstId + kIds),
      pairs_(kPairBuckets) {
  const std::vector<double>& share = profile.rank_share;
  for (std::size_t i = 0; i < rank_.size(); ++i) {
    const double u = static_cast<double>(i) / 65536 * share.back();
    std::size_t j = 0;
    while (j + 1 < share.size() && u > share[j]) ++j;
    const double below = j > 0 ? share[j - 1] : 0;
    const double fraction = (u - below) / std::max(1e-12, share[j] - below);
    const double first = j > 0 ? std::exp2(static_cast<double>(j) - 1) : 0, last = std::exp2(static_cast<double>(j));
    const double rank = j < 2 ? first + (last - first) * fraction : first * std::pow(last / first, fraction);
    rank_[i] = static_cast<std::uint32_t>(rank * 256);
  }
}

void TokenProcess::start_session(std::uint64_t group, std::uint32_t language) {
  ++epoch_;
  past_.clear();
  left_ = 0;
  group_ = scramble(salt_ * 1'000'003 + group + 12345);
  common_ = scramble(salt_ * 77 + language);
}

std::uint32_t TokenProcess::token(std::uint64_t bits) const {
  const std::uint64_t step = bits >> 48, fraction = bits >> 32 & 0xffff;
  const std::uint64_t a = rank_[step], b = rank_[step + 1];
  const std::uint64_t rank = (a + ((b - a) * fraction >> 16)) >> 8;
  // Spreads neighbouring ranks over the vocabulary.
  return kFirstId + static_cast<std::uint32_t>((rank * 40'503 + salt_ * 977) % kIds);
}

TokenProcess::Places& TokenProcess::pair_places(std::uint32_t first, std::uint32_t second) {
  return pairs_[scramble(static_cast<std::uint64_t>(first) << 32 | second) % kPairBuckets];
}

std::uint32_t TokenProcess::append(std::uint32_t id) {
  const auto position = static_cast<std::uint32_t>(past_.size());
  auto note = [&](Places& places) {
    if (places.epoch != epoch_) {
      places.epoch = epoch_;
      places.at.clear();
    }
    places.at.push_back(position);
  };
  note(ones_[id]);
  if (position > 0) note(pair_places(past_.back(), id));
  past_.push_back(id);
  return id;
}

// Distances of real reuse are spread about evenly over their logarithm, whatever the session's length so far.
std::size_t TokenProcess::distance_back(double recency) {
  const auto n = static_cast<double>(past_.size());
  const double d = n <= kNearest ? 1 + random_.uniform() * (n - 1)
                                 : kNearest * std::exp(std::log(n / kNearest) * power(random_.uniform(), recency));
  return static_cast<std::size_t>(std::clamp(d, 1.0, n - 1));
}

void TokenProcess::begin_own_at(std::size_t position, const RoleStyle& role) {
  span_ = Span::own;
  source_ = position;
  left_ = std::min(kLongestCopy, role.own_least * power(random_.uniform(), -role.own_tail));
}

// Copies from behind the latest of the places at or before a distance drawn, or the oldest one. The last of the places is
// the current position itself. False when there is no earlier one, or (pairs share buckets) none is found in three draws.
bool TokenProcess::begin_own(const Places& places, bool pair, const RoleStyle& role) {
  if (places.epoch != epoch_ || places.at.size() < 2) return false;
  const std::size_t last = past_.size() - 1;
  const auto first = places.at.begin(), end = places.at.end() - 1;
  for (int draw = 0; draw < 3; ++draw) {
    const auto later = std::upper_bound(first, end, static_cast<std::uint32_t>(last - distance_back(role.recency)));
    const std::size_t p = later == first ? *first : *(later - 1);
    if (pair && (p == 0 || past_[p] != past_[last] || past_[p - 1] != past_[last - 1])) continue;
    begin_own_at(p + 1, role);
    return true;
  }
  return false;
}

void TokenProcess::begin_span(const Style& style, const RoleStyle& role) {
  const double own = role.own_after_one + role.own_after_two + role.own_anywhere;
  const double total = role.fresh + own + role.group_idiom + role.common_idiom + role.group_document;
  double x = random_.uniform() * total;
  auto chosen = [&](double weight) { return (x -= weight) < 0; };
  auto begin_idiom = [&](Span span) {
    span_ = span;
    source_ = 0;
    left_ = role.idiom_least * power(random_.uniform(), -role.idiom_tail);
  };
  const std::size_t n = past_.size();
  if (chosen(own)) {
    if (n < 4) return begin_idiom(Span::common_idiom);
    double y = random_.uniform() * own;
    if ((y -= role.own_anywhere) < 0) return begin_own_at(n - 1 - distance_back(role.recency), role);
    if ((y -= role.own_after_two) < 0 && begin_own(pair_places(past_[n - 2], past_[n - 1]), true, role)) return;
    if (begin_own(ones_[past_[n - 1]], false, role)) return;
    return begin_idiom(Span::common_idiom);
  }
  if (chosen(role.group_idiom)) return begin_idiom(Span::group_idiom);
  if (chosen(role.common_idiom)) return begin_idiom(Span::common_idiom);
  if (chosen(role.group_document)) {
    const double r = std::min(1e9, power(random_.uniform(), -style.document_spread));
    span_ = Span::document;
    document_ = scramble(group_ * 31 + static_cast<std::uint64_t>(r));
    source_ = 0;
    left_ = 1 - role.document_mean * std::log(random_.uniform());
    return;
  }
  span_ = Span::fresh;
  left_ = 1;
}

std::uint32_t TokenProcess::idiom(std::uint64_t salt, const IdiomSpread& spread) {
  const std::size_t n = past_.size(), seen = std::min<std::size_t>(std::min<std::size_t>(source_++, 2) + 1, n);
  std::uint64_t context = salt * 3 + 1;
  for (std::size_t i = 0; i < seen; ++i) {
    context = (context ^ past_[n - 1 - i]) * kGolden;
    context ^= context >> 29;
  }
  const double s = seen <= 1 ? spread.after_one : seen == 2 ? spread.after_two : spread.after_three;
  const auto r = static_cast<std::uint64_t>(std::min(1e12, power(random_.uniform(), -s)));
  return token(scramble(context * 5 + r * kStep));
}

std::uint32_t TokenProcess::next(const Style& style, const RoleStyle& role) {
  if (left_ < 1) begin_span(style, role);
  left_ -= 1;
  switch (span_) {
    case Span::own:
      return append(past_[source_++]);
    case Span::group_idiom:
      return append(idiom(group_, style.group));
    case Span::common_idiom:
      return append(idiom(common_, style.common));
    case Span::document:
      return append(token(scramble(document_ + source_++ * kStep)));
    case Span::fresh:
      break;
  }
  return append(token(random_.bits()));
}

std::uint32_t TokenProcess::quote(std::uint64_t text, std::uint64_t position) {
  return append(token(scramble(scramble(salt_ * 999 + text) + position * kStep)));
}

}  // namespace slacktier::generator
