#include "probe/window_search.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr int baseline_steps = 12;  // of each kind before anything is delayed
constexpr std::size_t delays_a_baseline = 4;
constexpr double fit_seconds_a_step = 2.5e-4;  // of the bootstraps, on a slow core
constexpr double fine_ms = 0.015;              // what a window is wanted to: 15 us, or
constexpr double fine_share = 0.01;            // 1% of it
// In thresholds around the guess. The published estimator takes the first that shows.
constexpr double grid[] = {-2, -0.75, 0.5, 1.25, 2, 3};

// How far off a window may be and still be reported: 15 us, half a layer's time, or 2% of the step.
double tolerable_ms(double step_ms, int model_layers) {
  return std::max(0.015, std::min(step_ms / std::max(1, model_layers) / 2, 0.02 * step_ms));
}

struct Target {
  std::size_t injector = 0;
  std::size_t layer = 0;  // index of SearchSettings::layers
  std::vector<DelayedStep> steps;
  std::vector<double> places;  // of those in the run
  std::vector<double> took_ms;
  std::vector<double> delays;  // the grid
  double guess_ms = 0;         // of the knee
  bool done = false;
};

class Search {
 public:
  Search(StepRunner& steps, const SearchSettings& settings) : steps_(steps), settings_(settings), random_(settings.seed) {
    idle_.resize(steps.injectors());
    hooks_.resize(steps.injectors(), std::vector<std::vector<double>>(settings.layers.size()));
    stamped_hooks_.resize(steps.injectors());
    reached_.resize(settings.layers.size());
    for (std::size_t i = 0; i < steps.injectors(); ++i)
      for (std::size_t l = 0; l < settings.layers.size(); ++l) {
        Target target;
        target.injector = i;
        target.layer = l;
        targets_.push_back(target);
      }
  }

  SearchResult run() {
    baselines();
    bracket();
    rounds();
    return results();
  }

 private:
  void look() const {
    if (settings_.stop && settings_.stop()) throw Interrupted();
    if (settings_.progress) settings_.progress(std::min(1.0, settings_.seconds() / settings_.max_seconds));
  }
  // What fitting the steps taken will need is part of the time, too.
  bool late() const { return settings_.seconds() + place_ * fit_seconds_a_step >= settings_.max_seconds; }

  void run_plain() {
    plain_places_.push_back(place_++);
    plain_.push_back(steps_.plain());
  }
  // How much longer steps were than idle ones around them: what drifts cancels out.
  double over_idle(const std::vector<double>& ms, const std::vector<double>& places, std::size_t i) const {
    std::vector<double> over;
    for (std::size_t n = 0; n < ms.size(); ++n) over.push_back(ms[n] - idle_[i].at(places[n]));
    return median(over);
  }
  void run_idle(std::size_t i) { idle_[i].add(place_++, steps_.hooked(i, {})); }
  // Two steps beside each other, so that what drifts cancels out.
  void run_stamped(std::size_t i) {
    std::vector<double> reached, hooked;
    if (const auto step = steps_.stamped(reached)) {
      stamped_.push_back(*step);
      stamped_places_.push_back(place_);
    }
    ++place_;
    const auto hooked_step = steps_.hooked_stamped(i, hooked);
    ++place_;
    const bool both = !reached.empty() && hooked_step;
    if (both) stamped_hooks_[i].push_back(*hooked_step - stamped_.back());
    for (std::size_t l = 0; l < settings_.layers.size(); ++l) {
      const auto k = static_cast<std::size_t>(settings_.layers[l]);
      if (!reached.empty()) reached_[l].push_back(reached.at(k));
      if (both) hooks_[i][l].push_back(hooked.at(k) - reached.at(k));
    }
  }
  void delayed(Target& target, double x_ms) {
    look();
    const LayerDelay delay{settings_.layers[target.layer], x_ms};
    const double took = steps_.hooked(target.injector, {&delay, 1});
    target.steps.push_back({x_ms, 0});
    target.places.push_back(place_++);
    target.took_ms.push_back(took);
  }
  // Deltas against the baseline around each step, once that is complete.
  void set_deltas(Target& target) const {
    for (std::size_t i = 0; i < target.steps.size(); ++i)
      target.steps[i].delta_ms = target.took_ms[i] - idle_[target.injector].at(target.places[i]);
  }

  void baselines() {
    // The first replays of a graph are slower, and tell the clocks apart.
    for (int i = 0; i < 2; ++i) {
      steps_.plain();
      for (std::size_t j = 0; j < idle_.size(); ++j) steps_.hooked(j, {});
    }
    for (int i = 0; i < baseline_steps; ++i) {
      look();
      if (late() && i >= 3)
        throw UsageError(
            fmt::format("--max-seconds {:.3g}: time was up before the step without delays ({:.3g} ms) was known: raise it",
                        settings_.max_seconds, median(plain_)));
      run_plain();
      for (std::size_t j = 0; j < idle_.size(); ++j) {
        run_idle(j);
        run_stamped(j);
      }
    }
    noise_ = 0;
    for (const DriftingBaseline& idle : idle_) noise_ = std::max(noise_, step_noise(idle.steps()));
    step_ = median(plain_);
    threshold_ = settings_.threshold_ms.value_or(noise_threshold_ms(noise_, step_));
  }

  void bracket() {
    double longest = step_;
    for (const DriftingBaseline& idle : idle_) longest = std::max(longest, median(idle.steps()));
    const double x_ms = longest + 6 * threshold_;
    if (x_ms > settings_.watchdog_ms)
      throw UsageError(
          fmt::format("--watchdog-ms {:.3g}: the step takes {:.3g} ms, so delays of up to {:.3g} ms are needed: "
                      "raise the watchdog",
                      settings_.watchdog_ms, step_, x_ms));
    std::vector<std::size_t> order;
    for (std::size_t t = 0; t < targets_.size(); ++t) order.insert(order.end(), 2, t);
    std::shuffle(order.begin(), order.end(), random_);
    std::size_t n = 0;
    for (const std::size_t t : order) {
      if (late()) {
        unmet_ = "not every layer could be delayed once";
        break;
      }
      delayed(targets_[t], x_ms);
      if (++n % delays_a_baseline == 0) run_idle(targets_[t].injector);
    }
    for (Target& target : targets_) {
      if (target.steps.empty()) continue;
      set_deltas(target);
      double most = -1;
      for (const DelayedStep& step : target.steps) most = std::max(most, step.delta_ms);
      // Every layer is reached before the step's end, so six thresholds at least must show.
      if (most < 2 * threshold_)
        throw CheckFailed(fmt::format(
            "layer {}: a delay of {:.3f} ms made the step of {:.3f} ms longer by {:.3f} ms: this layer's hook is not in the "
            "graph, or the layer does not wait for it",
            settings_.layers[target.layer], x_ms, longest, most));
      guess(target);
    }
  }

  void guess(Target& target) {
    target.guess_ms = std::max(0.0, hinge_knee(target.steps));  // noise may say that it was needed before the step began
    target.delays.clear();
    for (const double offset : grid) {
      double x = target.guess_ms + offset * threshold_;
      // Before an early window there is little room, and before none there is none.
      if (offset < 0 && x <= 0) x = target.guess_ms * (offset < -1 ? 0.3 : 0.7);
      if (x > 0.001 && x <= settings_.watchdog_ms) target.delays.push_back(std::round(x * 1e4) / 1e4);
    }
  }

  // Half of the 95% interval to expect of what there is.
  double half_width(const Target& target) const {
    const double knee = hinge_knee(target.steps);
    std::vector<double> rest;
    for (const DelayedStep& step : target.steps)
      if (step.x_ms > knee) rest.push_back(std::abs(step.delta_ms - step.x_ms + knee));
    if (rest.size() < 4) return 1e9;
    return 1.96 * 1.4826 * median(rest) * 1.05 / std::sqrt(static_cast<double>(rest.size()));
  }

  void rounds() {
    for (int round = 0; round < settings_.max_rounds && unmet_.empty(); ++round) {
      struct Planned {
        std::size_t target;
        double x_ms;
      };
      std::vector<Planned> plan;
      for (std::size_t t = 0; t < targets_.size(); ++t)
        if (!targets_[t].done)
          for (const double x : targets_[t].delays) plan.push_back({t, x});
      if (plan.empty()) return;
      std::shuffle(plan.begin(), plan.end(), random_);
      std::size_t n = 0;
      for (const Planned& next : plan) {
        if (late()) {
          unmet_ = fmt::format("windows to {:.0f} us or {:.0f}%", fine_ms * 1e3, fine_share * 100);
          break;
        }
        delayed(targets_[next.target], next.x_ms);
        if (++n % delays_a_baseline == 0) {
          run_idle(targets_[next.target].injector);
          if (n % (4 * delays_a_baseline) == 0) between(n / (4 * delays_a_baseline));
        }
      }
      for (Target& target : targets_) {
        set_deltas(target);
        if (target.steps.empty()) continue;
        const double knee = std::max(0.0, hinge_knee(target.steps));
        const bool wrong = std::abs(knee - target.guess_ms) > 0.6 * threshold_;
        if (wrong) guess(target);
        const double wanted = std::max(fine_ms, fine_share * knee) / 3;
        target.done = !wrong && round + 1 >= settings_.min_rounds && half_width(target) <= wanted;
      }
    }
    for (const Target& target : targets_)
      if (!target.done && unmet_.empty())
        unmet_ = fmt::format("windows to {:.0f} us or {:.0f}%", fine_ms * 1e3, fine_share * 100);
  }

  // The other kinds of steps, in turn, all through the run.
  void between(std::size_t n) {
    run_plain();
    run_stamped(n % idle_.size());
  }

  SearchResult results() {
    SearchResult result;
    result.plain = plain_;
    result.step_ms = median(plain_);
    for (const DriftingBaseline& idle : idle_) noise_ = std::max(noise_, step_noise(idle.steps()));
    result.noise_ms = noise_;
    result.threshold_ms = threshold_;
    for (std::size_t i = 0; i < idle_.size(); ++i)
      result.hooked_ms.push_back(result.step_ms - over_idle(plain_, plain_places_, i));
    if (!stamped_.empty()) result.stamps_ms = over_idle(stamped_, stamped_places_, 0) - over_idle(plain_, plain_places_, 0);
    result.drift_ms = idle_[0].drift();
    if (result.drift_ms)
      result.drifted = !result.drift_ms->covers(0) &&
                       std::abs(result.drift_ms->estimate) > std::max(threshold_ / 2, 0.01 * result.step_ms);
    for (std::size_t l = 0; l < settings_.layers.size(); ++l) {
      LayerEstimate layer;
      layer.layer = settings_.layers[l];
      if (result.stamps_ms)
        layer.true_w_ms = median(reached_[l]) - *result.stamps_ms * layer.layer / std::max(1, settings_.model_layers);
      for (const Target& target : targets_)
        if (target.layer == l) layer.injectors.push_back(estimate(target, result));
      judge(layer, result);
      result.layers.push_back(std::move(layer));
    }
    result.unmet = unmet_;
    result.seconds = settings_.seconds();
    return result;
  }

  // What idle hooks up to and with this layer's add, with its standard error. They slow down all that is queued beside them,
  // not just the layers that have one: timestamps of steps with and without them say which part of it comes before the
  // layer. How much it is in all, steps without timestamps say, since beside hooks these take longer themselves. Without any
  // it is the part that the way to the layer is of the step.
  struct Added {
    double ms = 0, error_ms = 0;
  };
  Added hooks_before(const Target& target, double knee_ms, const SearchResult& result) const {
    const std::vector<double>& added = hooks_[target.injector][target.layer];
    const double hooked = result.hooked_ms[target.injector], all = hooked - result.step_ms;
    if (added.empty()) return {all * std::clamp(knee_ms / hooked, 0.0, 1.0), 0};
    const double stamped = median(stamped_hooks_[target.injector]);
    const double scale = stamped > 0 ? std::clamp(all / stamped, 0.0, 2.0) : 1;
    // A median of normal values has sqrt(pi / 2) of the error of their mean.
    const double error = robust_deviation(added) * std::sqrt(std::numbers::pi / 2 / static_cast<double>(added.size()));
    return {scale * median(added), scale * error};
  }

  InjectorEstimate estimate(const Target& target, const SearchResult& result) const {
    InjectorEstimate estimate;
    estimate.steps = target.steps.size();
    if (target.steps.empty()) return estimate;
    estimate.fit = fit_hinge(target.steps, settings_.seed + target.layer);
    estimate.knee_ms = estimate.fit.w_ms;
    const Added hooks = hooks_before(target, estimate.knee_ms, result);
    estimate.hooks_ms = hooks.ms;
    const double shift = settings_.latency_ms[target.injector] - hooks.ms;
    estimate.points = delay_points(target.steps);
    estimate.w_ms = std::max(0.0, estimate.knee_ms + shift);
    if (estimate.fit.interval) {
      const double more = 1.96 * hooks.error_ms;
      estimate.lo_ms = std::max(0.0, *estimate.w_ms - std::hypot(estimate.knee_ms - estimate.fit.interval->lo, more));
      estimate.hi_ms = *estimate.w_ms + std::hypot(estimate.fit.interval->hi - estimate.knee_ms, more);
    }
    // Delays of one step each are no points: a single late step would pass for a window's end.
    std::vector<DelayPoint> points;
    for (const DelayPoint& point : estimate.points)
      if (point.n > 1) points.push_back(point);
    if (const auto w = threshold_window(points, threshold_)) estimate.threshold_w_ms = std::max(0.0, *w + shift);
    return estimate;
  }

  void judge(LayerEstimate& layer, const SearchResult& result) const {
    const auto end = [&](WindowStatus status, std::string reason) {
      layer.status = status;
      layer.reason = std::move(reason);
    };
    const double tolerable = tolerable_ms(result.step_ms, settings_.model_layers);
    const InjectorEstimate& first = layer.injectors.front();
    if (first.steps == 0) return end(WindowStatus::failed, "no time was left to delay this layer: raise --max-seconds");
    if (!first.fit.interval)
      return end(WindowStatus::noisy,
                 fmt::format("{} steps of this layer are too few for an interval: raise --max-seconds", first.steps));
    const double half = (*first.hi_ms - *first.lo_ms) / 2;
    if (half > tolerable)
      return end(WindowStatus::noisy,
                 fmt::format("the step is noisier than the effect: the window is known to ±{:.3f} ms after {} steps; for "
                             "±{:.3f} ms it takes about {:.0f}",
                             half, first.steps, tolerable,
                             std::ceil(static_cast<double>(first.steps) * (half / tolerable) * (half / tolerable))));
    if (first.fit.slope && (first.fit.slope->hi < 0.95 || first.fit.slope->lo > 1.05))
      return end(WindowStatus::disagree,
                 fmt::format("slope {:.2f} ({:.2f} to {:.2f}) where 1 is expected: what a delay adds is "
                             "not what exceeds the window",
                             first.fit.slope->estimate, first.fit.slope->lo, first.fit.slope->hi));
    for (std::size_t i = 1; i < layer.injectors.size(); ++i) {
      const InjectorEstimate& other = layer.injectors[i];
      if (!other.w_ms || !other.lo_ms) continue;
      const double apart = std::abs(*other.w_ms - *first.w_ms);
      double noise = half + (*other.hi_ms - *other.lo_ms) / 2;
      // What a step's latency differs by, a whole run's may, too: it depends on the state that threads and clocks are in.
      for (const double latency : settings_.latency_noise_ms) noise += latency;
      layer.usable = apart <= std::max({tolerable, fine_share * *first.w_ms, noise});
      if (apart > std::max({fine_ms, fine_share * *first.w_ms, noise}))
        return end(WindowStatus::disagree,
                   fmt::format("injectors disagree: {:.3f} and {:.3f} ms", *first.w_ms, *other.w_ms));
    }
    if (first.threshold_w_ms) {
      const double apart = std::abs(*first.threshold_w_ms - *first.w_ms);
      if (apart > std::max({2 * fine_ms, 2 * fine_share * *first.w_ms, 2 * half, 3 * first.fit.noise_ms, tolerable}))
        layer.usable = false;
      if (apart > std::max({2 * fine_ms, 2 * fine_share * *first.w_ms, 2 * half, 3 * first.fit.noise_ms}))
        return end(WindowStatus::disagree, fmt::format("estimators disagree: hinge {:.3f}, threshold {:.3f} ms", *first.w_ms,
                                                       *first.threshold_w_ms));
    }
    if (*first.lo_ms <= fine_ms && *first.w_ms <= std::max(fine_ms, half))
      return end(WindowStatus::no_window, "the step needs this layer's rows at once");
    end(WindowStatus::ok, "");
  }

  StepRunner& steps_;
  const SearchSettings& settings_;
  std::mt19937_64 random_;
  std::vector<Target> targets_;
  std::vector<DriftingBaseline> idle_;  // by injector
  std::vector<double> plain_, stamped_, plain_places_, stamped_places_;
  std::vector<std::vector<double>> reached_;             // by layer
  std::vector<std::vector<std::vector<double>>> hooks_;  // by injector and layer: how much later idle hooks make it
  std::vector<std::vector<double>> stamped_hooks_;       // by injector: what they add to a step with timestamps
  double place_ = 0;
  double step_ = 0, noise_ = 0, threshold_ = 0;
  std::string unmet_;
};

}  // namespace

const char* to_string(WindowStatus status) {
  switch (status) {
    case WindowStatus::ok:
      return "ok";
    case WindowStatus::no_window:
      return "no-window";
    case WindowStatus::noisy:
      return "noisy";
    case WindowStatus::disagree:
      return "disagree";
    case WindowStatus::failed:
      return "failed";
  }
  return "failed";
}

double noise_threshold_ms(double noise_ms, double step_ms) { return std::max({0.3, 3 * noise_ms, 0.01 * step_ms}); }

SearchResult search_windows(StepRunner& steps, const SearchSettings& settings) { return Search(steps, settings).run(); }

}  // namespace slacktier
