// slacktier-iobench sweep: many loads, a line through them, verdicts, and the file that the planner reads.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "iobench/cli/commands.hpp"
#include "iobench/fit.hpp"
#include "iobench/read_plot.hpp"
#include "iobench/sweep.hpp"
#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "platforms/progress.hpp"

namespace slacktier::cli {
namespace {

struct SweepArguments {
  ReadArguments read;
  std::string image;
  std::vector<int> threads;
  std::vector<std::uint32_t> ranks, tenants, prefill_pages;
  std::string plot;
  std::vector<std::string> orders;
  std::uint32_t batches = 200;
  bool quick = false;
};

// Every configuration of the lists; an empty list is the single value of the common options.
std::vector<LoadOptions> configurations_of(const SweepArguments& a, const ReadPlan& plan) {
  std::vector<LoadOptions> all;
  const auto threads = a.threads.empty() ? std::vector{plan.load.settings.threads} : a.threads;
  const auto ranks = a.ranks.empty() ? std::vector{a.read.ranks} : a.ranks;
  const auto tenants = a.tenants.empty() ? std::vector{a.read.tenants} : a.tenants;
  const auto orders = a.orders.empty() ? std::vector{a.read.order} : a.orders;
  for (const auto& order : orders)
    for (const std::uint32_t r : ranks)
      for (const std::uint32_t k : tenants)
        for (const int t : threads) {
          LoadOptions load = plan.load;
          if (!a.tenants.empty() && k > 1) load.wrappers.insert(load.wrappers.begin(), fmt::format("shared:tenants={}", k));
          load.order = parse_submit_order(order);
          load.ranks = r;
          load.settings.threads = t;
          all.push_back(load);
        }
  return all;
}

// What each configuration reads.
struct Loads {
  std::vector<std::vector<LayerPages>> points;  // the full load first
  std::size_t fitted = 0;                       // the first so many make the line; prefill's would outweigh them
  std::vector<LayerPages> most;                 // of each layer
};

Loads loads_of(const SweepArguments& a, const std::vector<LayerPages>& full) {
  Loads loads;
  loads.points =
      sweep_points(full, a.quick ? std::vector<std::uint32_t>{2, 8, 16} : std::vector<std::uint32_t>{1, 4, 8, 12, 16});
  loads.fitted = loads.points.size();
  for (const std::uint32_t pages : a.prefill_pages) {
    std::vector<LayerPages> point = full;
    for (LayerPages& layer : point) layer.pages = pages;
    loads.points.push_back(point);
  }
  loads.most = full;
  for (const auto& point : loads.points)
    for (std::size_t l = 0; l < full.size(); ++l) loads.most[l].pages = std::max(loads.most[l].pages, point[l].pages);
  return loads;
}

// One configuration's points, and, unless it was cut short, its lines and verdicts. Samples go to `folder` as NAME-point-N.
ReadResult result_of(const SweepArguments& a, const ReadPlan& plan, const LoadOptions& options, const Load& load,
                     const Measurement& measured, std::size_t fitted, const std::string& folder, const std::string& name) {
  ReadResult result = describe_load(plan, options, load, false);
  result.steady = measured.steady;
  result.unmet = measured.unmet;
  for (std::size_t p = 0; p < measured.points.size(); ++p)
    if (!measured.points[p].wall_us.empty())
      result.points.push_back(point_result(measured.points[p], options.ranks, folder, fmt::format("{}-point-{}", name, p)));
  if (measured.interrupted || measured.failure) return result;
  for (std::size_t l = 0; l < plan.pages.size(); ++l) {
    const LayerPages& layer = plan.pages[l];
    if (layer.pages == 0) continue;
    result.fit.push_back(fit_read_time(layer.layer, std::span(measured.points).first(fitted)));
    if (plan.windows)
      result.verdicts.push_back(judge(plan.windows->ms.at(layer.layer), a.read.resolve_ms, measured.points[0], l,
                                      line_of(result.fit.back(), pages_by_layer(plan.pages)), plan.batch));
  }
  return result;
}

int sweep(SweepArguments a, const Invocation& invocation) {
  parse_table_format(a.read.format);
  if (a.read.disks.empty() && a.image.empty() && a.read.remote.connect.empty())
    throw UsageError("sweep: name an image: slacktier-iobench sweep --quick FILE");
  if (!a.image.empty()) a.read.disks.push_back(a.image);
  if (a.quick) {
    a.batches = std::min(a.batches, 50u);
    a.read.max_seconds = std::min(a.read.max_seconds, 25.0);
    if (!a.read.disks.empty() && !std::filesystem::exists(a.read.disks.front()) && a.read.create == 0)
      a.read.create = std::uint64_t{1} << 30;
  }
  const ReadPlan plan = plan_reads(a.read);
  const Loads loads = loads_of(a, plan.pages);
  const auto configurations = configurations_of(a, plan);
  MeasureOptions options;
  options.batches = a.batches;
  options.rounds = a.quick ? 5 : 10;
  options.max_seconds = a.read.max_seconds;
  options.seed = a.read.seed;
  options.stop = [] { return interrupted(); };
  Neighbours neighbours(a.read, plan, options);
  Progress progress("sweeping", 1000 * configurations.size(), ProgressUnit::steps, stderr_progress(a.read.quiet));
  const std::string folder = samples_folder(a.read.out);
  Envelope envelope = read_envelope_of(plan, "sweep", invocation, a.read.seed);
  std::vector<ReadResult> results;
  std::vector<std::string> lines;
  bool fits = true, stopped = false;
  std::exception_ptr failure;
  for (std::size_t c = 0; c < configurations.size() && !stopped; ++c) {
    Load load(configurations[c], loads.most);
    options.progress = [&](double share) {
      const std::uint64_t done = 1000 * c + static_cast<std::uint64_t>(1000 * share);
      progress.advance(done - std::min(done, progress.done()));
    };
    neighbours.begin();
    const Measurement measured = measure(load, loads.points, options);
    failure = measured.failure;
    stopped = measured.interrupted || failure;
    note_early_end(envelope, measured);
    note_drift(envelope, measured.points[0]);
    ReadResult result =
        result_of(a, plan, configurations[c], load, measured, loads.fitted, folder, fmt::format("load-{}", c));
    neighbours.end(result);
    for (const ReadVerdict& verdict : result.verdicts) {
      fits = fits && verdict.fits != Fits::no;
      lines.push_back(verdict_line(verdict, result.points[0].t_us.at(verdict.k)));
    }
    if (!result.points.empty()) results.push_back(std::move(result));
  }
  progress.finish();
  neighbours.stop(envelope);
  if (failure && results.empty()) std::rethrow_exception(failure);
  if (results.empty()) throw Interrupted();
  set_read_results(envelope, results);
  if (parse_table_format(a.read.format) == TableFormat::text) {
    for (const auto& line : lines) fmt::print("{}\n", line);
    if (!lines.empty()) fmt::print("\n");
  }
  std::vector<Table> tables;
  if (plan.windows) tables.push_back(verdict_table(envelope));
  tables.push_back(point_table(envelope));
  deliver(envelope, a.read, tables);
  if (!a.plot.empty()) {
    write_text_file(a.plot, render_svg(read_time_plot(envelope)));
    fmt::print(stderr, "plot: {}\n", a.plot);
  }
  if (failure) std::rethrow_exception(failure);
  if (stopped) throw Interrupted();
  return fits ? 0 : 1;
}

}  // namespace

Command add_sweep(CLI::App& app, const Invocation& invocation) {
  const auto a = std::make_shared<SweepArguments>();
  add_read_options(app, a->read);
  app.add_option("image", a->image, "Staged image to read (as --disk)")->type_name("FILE");
  app.add_option("--threads-list", a->threads, "Thread counts to sweep, such as 1,2,4")->delimiter(',');
  app.add_option("--ranks-list", a->ranks, "Rank counts to sweep")->delimiter(',')->check(CLI::Range(1, 64));
  app.add_option("--tenants-list", a->tenants, "Tenant counts to sweep, as extra reads")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->excludes("--tenants");
  app.add_option("--plot", a->plot, "Write the read times, their fits and windows as a figure (SVG)");
  app.add_option("--orders", a->orders, "Orders to sweep: layer-first,interleaved")->delimiter(',');
  app.add_option("--prefill-pages", a->prefill_pages,
                 "Further loads with so many pages a layer, such as an 8K prefill's: read once a round, not "
                 "part of the fit but set beside it")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--batches", a->batches, "Batches of each load")->check(CLI::Range(1, 10'000'000))->capture_default_str();
  app.add_flag("--quick", a->quick,
               "Within a minute: nine loads, 50 batches each; a FILE that is not there is staged with 1 GiB");
  return [a, &invocation] { return sweep(*a, invocation); };
}

}  // namespace slacktier::cli
