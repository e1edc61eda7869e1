// slacktier-iobench run: one load, and whether it fits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "iobench/cli/commands.hpp"
#include "iobench/fio_job.hpp"
#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "platforms/progress.hpp"

namespace slacktier::cli {
namespace {

struct RunArguments {
  ReadArguments read;
  std::uint32_t batches = 700, rounds = 10;
  double period_ms = 0;
  std::string duration, interval;
  bool dry_run = false, print_fio = false;
  std::uint32_t show_offsets = 0;
};

// "90", "90s", "15m", "24h" in seconds.
double seconds(const std::string& option, const std::string& text) {
  static const std::pair<char, double> units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  std::string number = text;
  double factor = 1;
  for (const auto& [unit, size] : units)
    if (!number.empty() && number.back() == unit) {
      factor = size;
      number.pop_back();
      break;
    }
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(number, &used);
  } catch (const std::logic_error&) {
  }
  if (used != number.size() || !(value > 0) || value * factor > 3e7)
    throw UsageError(fmt::format("{} {}: write a time such as 90s, 15m or 24h", option, text));
  return value * factor;
}

// A quarter of each layer's pages: with the full load it gives the line on which larger and smaller batches lie.
std::vector<LayerPages> quarter(std::vector<LayerPages> pages) {
  for (LayerPages& layer : pages) layer.pages = (layer.pages + 3) / 4;
  return pages;
}

std::vector<ReadInterval> intervals(const PointSamples& samples, double length_s) {
  std::vector<ReadInterval> result;
  for (std::size_t begin = 0; begin < samples.start_s.size();) {
    const double start = std::floor(samples.start_s[begin] / length_s) * length_s;
    std::size_t end = begin;
    while (end < samples.start_s.size() && samples.start_s[end] < start + length_s) ++end;
    ReadInterval interval;
    interval.start_s = start;
    for (std::size_t l = 0; l < samples.pages.size(); ++l)
      interval.t_us[samples.pages[l].layer] = tail_distribution(std::span(samples.t_us[l]).subspan(begin, end - begin));
    result.push_back(std::move(interval));
    begin = end;
  }
  return result;
}

Table interval_table(const ReadPoint& point) {
  Table table;
  table.title = "T over time";
  table.columns = {{"from", "s", Align::right, "start_s"}, {"k", "", Align::right, ""},
                   {"T mean", "ms", Align::right, ""},     {"p50", "ms", Align::right, ""},
                   {"p99", "ms", Align::right, ""},        {"p99.9", "ms", Align::right, "p999_ms"},
                   {"max", "ms", Align::right, ""},        {"batches", "", Align::right, ""}};
  const auto ms = [](const std::optional<double>& us) { return us ? Cell::number(*us / 1e3, 2) : Cell(); };
  for (const ReadInterval& interval : point.intervals)
    for (const auto& [k, t] : interval.t_us)
      table.rows.push_back({Cell::number(interval.start_s, 0), Cell::count(k), ms(t.mean), ms(t.p50), ms(t.p99), ms(t.p999),
                            ms(t.max), Cell::count(static_cast<std::int64_t>(t.n))});
  return table;
}

int run(const RunArguments& a, const Invocation& invocation) {
  parse_table_format(a.read.format);
  const ReadPlan plan = plan_reads(a.read);
  if (a.show_offsets > 0) {
    const Load load(plan.load, plan.pages);
    fmt::print("batch,rank,layer,page,disk,offset\n");
    for (std::uint32_t batch = 0; batch < a.show_offsets; ++batch)
      for (std::uint32_t rank = 0; rank < plan.load.ranks; ++rank)
        for (const auto& o : load.offsets(plan.pages, batch, rank))
          fmt::print("{},{},{},{},{},{}\n", batch, rank, o.layer, o.page, o.disk, o.offset);
    return 0;
  }
  if (a.print_fio) {
    fmt::print("{}", fio_job(plan.load, plan.pages));
    return 0;
  }
  std::uint64_t pages = 0;
  for (const LayerPages& layer : plan.pages) pages += layer.pages;
  if (a.dry_run) {
    fmt::print("reads {} from {}, {} rank(s), {} pages a batch, {} batches and as many of a quarter: {:.1f} GiB\n",
               to_string(plan.pages), plan.images.front().paths.front(), plan.load.ranks, pages * plan.load.ranks, a.batches,
               1.25 * static_cast<double>(pages * plan.load.ranks * a.batches * plan.images.front().geometry.page_bytes) /
                   (1 << 30));
    return 0;
  }
  MeasureOptions options;
  options.batches = a.batches;
  options.rounds = a.rounds;
  options.max_seconds = a.read.max_seconds;
  options.period = static_cast<Nanos>(a.period_ms * 1e6);
  options.seed = a.read.seed;
  options.stop = [] { return interrupted(); };
  std::vector<std::vector<LayerPages>> points{plan.pages};
  double interval_s = 0;
  if (!a.duration.empty()) {
    options.max_seconds = seconds("--duration", a.duration);
    interval_s = a.interval.empty() ? options.max_seconds / 24 : seconds("--interval", a.interval);
    options.whole_time = true;
  } else if (quarter(plan.pages) != plan.pages) {
    points.push_back(quarter(plan.pages));
  }
  Neighbours neighbours(a.read, plan, options);
  Load load(plan.load, plan.pages);
  Progress progress("reading", 1000, ProgressUnit::steps, stderr_progress(a.read.quiet));
  options.progress = [&](double share) {
    const auto done = static_cast<std::uint64_t>(1000 * share);
    progress.advance(done - std::min(done, progress.done()));
  };
  neighbours.begin();
  const Measurement measured = measure(load, points, options);
  progress.finish();

  const std::string folder = samples_folder(a.read.out);
  Envelope envelope = read_envelope_of(plan, "run", invocation, a.read.seed);
  ReadResult result = describe_load(plan, plan.load, load, a.period_ms > 0);
  neighbours.end(result);
  neighbours.stop(envelope);
  std::uint64_t zero = 0, all = 0;
  for (std::size_t p = 0; p < measured.points.size(); ++p) {
    const PointSamples& samples = measured.points[p];
    ReadPoint point = point_result(samples, plan.load.ranks, folder, fmt::format("point-{}", p));
    if (interval_s > 0) point.intervals = intervals(samples, interval_s);
    result.points.push_back(std::move(point));
    zero += samples.zero_pages;
    all += samples.page_reads * plan.load.ranks;
  }
  if (!plan.load.stamped && all > 0) result.zero_pages_share = static_cast<double>(zero) / static_cast<double>(all);
  if (interval_s == 0) result.steady = measured.steady;
  result.unmet = measured.unmet;
  bool fits = true;
  if (plan.windows)
    for (std::size_t l = 0; l < plan.pages.size(); ++l) {
      if (plan.pages[l].pages == 0) continue;
      std::optional<LoadLine> line;
      if (measured.points.size() > 1 && !measured.points[0].t_us[l].empty() && !measured.points[1].t_us[l].empty())
        line = line_through(measured.points[1], measured.points[0], l);
      result.verdicts.push_back(
          judge(plan.windows->ms.at(plan.pages[l].layer), a.read.resolve_ms, measured.points[0], l, line, plan.batch));
      fits = fits && result.verdicts.back().fits != Fits::no;
    }
  note_early_end(envelope, measured);
  note_drift(envelope, measured.points[0]);
  if (const std::string drift = drift_text(measured.points[0]); !drift.empty()) envelope.settings["labels"].push_back(drift);
  set_read_results(envelope, {result});
  if (parse_table_format(a.read.format) == TableFormat::text) {
    for (const ReadVerdict& verdict : result.verdicts)
      fmt::print("{}\n", verdict_line(verdict, result.points[0].t_us.at(verdict.k)));
    if (!result.verdicts.empty()) fmt::print("\n");
  }
  std::vector<Table> tables;
  if (!result.verdicts.empty()) tables.push_back(verdict_table(envelope));
  tables.push_back(point_table(envelope));
  if (interval_s > 0) tables.push_back(interval_table(result.points[0]));
  deliver(envelope, a.read, tables);
  if (measured.failure) std::rethrow_exception(measured.failure);
  if (measured.interrupted) throw Interrupted();
  return fits ? 0 : 1;
}

}  // namespace

Command add_run(CLI::App& app, const Invocation& invocation) {
  const auto a = std::make_shared<RunArguments>();
  add_read_options(app, a->read);
  app.add_option("--batches", a->batches, "Batches to measure; a p99 needs 662")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--rounds", a->rounds, "Rounds into which they are dealt")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--period-ms", a->period_ms, "Start a batch every so many ms, as decode steps do; default: back to back")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--duration", a->duration, "Read for so long (90s, 15m, 24h) and show T over time");
  app.add_option("--interval", a->interval, "Length of an interval of --duration; default: a 24th of it");
  app.add_option("--show-offsets", a->show_offsets, "Only print the offsets of the first batches, as CSV");
  app.add_flag("--print-fio", a->print_fio, "Only print the fio job that reads likewise");
  app.add_flag("--dry-run", a->dry_run, "Only say what would be read");
  return [a, &invocation] { return run(*a, invocation); };
}

}  // namespace slacktier::cli
