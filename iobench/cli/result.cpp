// From measurements to result files and tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "iobench/cli/commands.hpp"
#include "iobench/load_text.hpp"
#include "reports/json.hpp"

namespace slacktier::cli {
namespace {

Cell ms(const std::optional<double>& us) { return us ? Cell::number(*us / 1e3, 2) : Cell(); }

std::vector<std::string> head_of(const Envelope& envelope) {
  std::vector<std::string> head{fmt::format("image {} · {} B pages", envelope.settings["image"].get<std::string>(),
                                            envelope.settings["page_bytes"].get<int>())};
  for (const Json& label : envelope.settings["labels"]) head.push_back(label.get<std::string>());
  for (const Warning& warning : envelope.warnings) head.push_back("warning: " + warning.message);
  return head;
}

// What the line says beside what was measured: of the loads it was fitted to the one that it fits worst, and each beyond
// them.
std::vector<std::string> residual_notes(const ReadResult& result, const ReadFit& fit) {
  std::vector<std::string> notes;
  double largest = 0;
  for (const ReadPoint& point : result.points) {
    const auto t = point.t_us.find(fit.k);
    if (t == point.t_us.end() || !t->second.mean || point.pages_per_rank.at(fit.k) == 0) continue;
    const double measured = *t->second.mean, residual = measured - fit.at(point.pages_per_rank);
    const bool beyond = fit.extrapolates(point.pages_per_rank);
    if (!beyond && std::abs(residual) <= std::abs(largest)) continue;
    const std::string what = beyond ? fmt::format("beyond the fit, T{} {:.2f} ms, its residual", fit.k, measured / 1e3)
                                    : fmt::format("largest residual of T{}", fit.k);
    const std::string note = fmt::format("fit, {}: {}: {:+.0f} us ({:+.1f}%) at {}", load_text(result), what, residual,
                                         100 * residual / measured, pages_text(point));
    if (beyond) {
      notes.push_back(note);
      continue;
    }
    if (largest == 0) notes.insert(notes.begin(), "");
    notes.front() = note;
    largest = residual;
  }
  return notes;
}

// How T of a layer changed from the first round to the last, in percent of its mean; empty for fewer than five rounds.
std::optional<Interval> drift_pct(const PointSamples& point, std::size_t layer) {
  const std::vector<double> means = point.round_means(layer);
  if (means.size() < 5 || point.pages[layer].pages == 0) return {};
  std::vector<double> order(means.size());
  std::iota(order.begin(), order.end(), 0.0);
  Interval drift = run_order_slope(order, means);
  const double whole = static_cast<double>(means.size() - 1) / summarise(means).mean * 100;
  for (double* value : {&drift.estimate, &drift.lo, &drift.hi}) *value *= whole;
  return drift;
}

}  // namespace

ReadResult describe_load(const ReadPlan& plan, const LoadOptions& options, const Load& load, bool paced) {
  ReadResult result;
  result.source = options.source;
  result.ranks_on_disk = static_cast<std::int64_t>((options.ranks + plan.images.size() - 1) / plan.images.size());
  result.disks = static_cast<std::int64_t>(plan.images.front().paths.size());
  result.threads = options.settings.threads;
  for (const auto& wrapper : options.wrappers)
    if (wrapper.starts_with("shared:tenants=")) result.tenants = std::stoi(wrapper.substr(15));
  result.order = to_string(options.order);
  result.pacing = paced ? "paced" : "back-to-back";
  result.verify = !options.stamped ? "unstamped" : options.settings.verify_checksum ? "checksum" : "stamp";
  ReadEngine engine;
  engine.effective = load.describe();
  engine.direct = !uses_page_cache(options.source) && !is_remote_source(options.source) && options.settings.direct;
  engine.fixed_buffers = load.registered_bytes() > 0;
  engine.fixed_files = options.source == "uring" && options.settings.register_files;
  engine.sqpoll = options.settings.poller_cpu >= 0;
  engine.iopoll = options.settings.poll_completions;
  result.engine = engine;
  return result;
}

ReadPoint point_result(const PointSamples& samples, std::uint32_t ranks, const std::string& folder,
                       const std::string& name) {
  ReadPoint point;
  const std::size_t batches = samples.wall_us.size(), layers = samples.pages.size();
  for (std::size_t l = 0; l < layers; ++l) {
    const int k = samples.pages[l].layer;
    point.pages_per_rank[k] = samples.pages[l].pages;
    point.submit_us[k] = distribution(samples.submit_us[l]);
    point.t_us[k] = tail_distribution(samples.t_us[l]);
    if (!samples.response_us[l].empty()) point.response_us[k] = tail_distribution(samples.response_us[l]);
  }
  if (batches > 0) {
    point.batch_us = tail_distribution(samples.wall_us);
    point.cycle_us = samples.cycle_us / static_cast<double>(batches);
  }
  if (samples.page_reads > 0) {
    const auto pages = static_cast<double>(samples.page_reads * ranks);
    point.cpu_us_per_page = point.cycle_cpu_us_per_page = samples.cycle_cpu_us / pages;
    point.pages_per_s = pages / samples.cycle_us * 1e6;
  }
  if (!folder.empty() && batches > 0) {
    std::vector<double> values;
    for (std::size_t b = 0; b < batches; ++b)
      for (std::size_t l = 0; l < layers; ++l) values.push_back(samples.t_us[l][b]);
    point.samples = write_npy(folder, name + ".npy", NpyArray{{batches, layers}, values});
  }
  return point;
}

void note_early_end(Envelope& envelope, const Measurement& measured) {
  if (measured.interrupted) envelope.warnings.push_back({"interrupted", "interrupted: what had been read is reported", ""});
  if (!measured.failure) return;
  try {
    std::rethrow_exception(measured.failure);
  } catch (const std::exception& error) {
    envelope.warnings.push_back(
        {"read_failed", fmt::format("a read failed, what had been read before is reported: {}", error.what()), ""});
  }
}

std::string drift_text(const PointSamples& point) {
  std::string text;
  for (std::size_t l = 0; l < point.pages.size(); ++l)
    if (const auto drift = drift_pct(point, l))
      text += fmt::format("{}T{} {:+.1f}% [{:+.1f}, {:+.1f}]", text.empty() ? "run order, first round to last: " : ", ",
                          point.pages[l].layer, drift->estimate, drift->lo, drift->hi);
  return text;
}

void note_drift(Envelope& envelope, const PointSamples& point) {
  for (std::size_t l = 0; l < point.pages.size(); ++l) {
    const auto drift = drift_pct(point, l);
    if (!drift || drift->covers(0) || std::abs(drift->estimate) < 5) continue;
    envelope.warnings.push_back(
        {"drift",
         fmt::format(
             "layer {}: T changed by {:+.0f}% [{:+.0f}, {:+.0f}] from the first round to the last of {}: the disk was not "
             "at rest",
             point.pages[l].layer, drift->estimate, drift->lo, drift->hi, point.round_means(l).size()),
         ""});
  }
}

std::string samples_folder(const std::string& out) {
  if (out.empty()) return "";
  const std::filesystem::path file(out);
  return (file.parent_path() / (file.stem().string() + "-samples")).string();
}

std::string verdict_line(const ReadVerdict& verdict, const std::optional<Distribution>& t) {
  std::string line = fmt::format("layer {}: ", verdict.k);
  line += verdict.fits == Fits::yes ? "FITS" : verdict.fits == Fits::no ? "DOES NOT FIT" : "UNCLEAR";
  if (t && t->mean)
    line += fmt::format(" its {} ms window: T mean {:.2f} ms{}", verdict.window_ms, *t->mean / 1e3,
                        t->p99 ? fmt::format(", p99 {:.2f} ms", *t->p99 / 1e3) : "");
  if (!verdict.reason.empty()) line += "; " + verdict.reason;
  return line;
}

Table verdict_table(const Envelope& envelope) {
  Table table;
  table.title = "Does each layer's read fit its window?";
  table.head = head_of(envelope);
  table.columns = {{"load", "", Align::left, "", 34},
                   {"k", "", Align::right, ""},
                   {"verdict", "", Align::left, ""},
                   {"window", "ms", Align::right, ""},
                   {"headroom", "ms", Align::right, "headroom_mean_ms"},
                   {"at p99", "ms", Align::right, "headroom_p99_ms"},
                   {"most B", "", Align::right, "max_batch"},
                   {"most tenants", "", Align::right, "max_tenants"}};
  for (const ReadResult& result : read_results(envelope))
    for (const ReadVerdict& v : result.verdicts)
      table.rows.push_back({load_text(result), Cell::count(v.k), to_string(v.fits), Cell::number(v.window_ms, 2),
                            Cell::number(v.headroom_mean_ms, 2, true), Cell::number(v.headroom_p99_ms, 2, true),
                            v.max_batch ? Cell::count(*v.max_batch) : Cell(),
                            v.max_tenants ? Cell::count(*v.max_tenants) : Cell()});
  table.footnotes = {
      "headroom: window - (s + T_k), on average and at the p99; most B, tenants: where the mean would meet the "
      "window, estimated from the measured loads"};
  return table;
}

Table point_table(const Envelope& envelope) {
  Table table;
  table.title = "Time until the last page has arrived";
  table.head = head_of(envelope);
  table.columns = {{"load", "", Align::left, "", 34},
                   {"k", "", Align::right, ""},
                   {"pages", "rank", Align::right, "pages_per_rank"},
                   {"T mean", "ms", Align::right, ""},
                   {"p50", "ms", Align::right, ""},
                   {"p90", "ms", Align::right, ""},
                   {"p99", "ms", Align::right, ""},
                   {"max", "ms", Align::right, ""},
                   {"submit", "µs", Align::right, "submit_us"},
                   {"response", "ms", Align::right, "response_mean_ms"},
                   {"CPU", "µs/page", Align::right, "cpu_us_per_page"},
                   {"batches", "", Align::right, ""}};
  std::size_t needs = 0;
  for (const ReadResult& result : read_results(envelope)) {
    Cell load(load_text(result));
    for (const ReadPoint& point : result.points)
      for (const auto& [k, t] : point.t_us) {
        const auto response = point.response_us.find(k);
        table.rows.push_back({load, Cell::count(k), Cell::count(point.pages_per_rank.at(k)), ms(t.mean), ms(t.p50),
                              ms(t.p90), ms(t.p99), ms(t.max), Cell::number(point.submit_us.at(k).mean, 0),
                              response == point.response_us.end() ? Cell() : ms(response->second.mean),
                              Cell::number(point.cpu_us_per_page, 2), Cell::count(static_cast<std::int64_t>(t.n))});
        load.shown_as = std::string(" ");
        if (!t.p99) needs = samples_needed(0.99);
      }
    if (result.engine) {
      table.footnotes.push_back(fmt::format("{}: {}", result.source, result.engine->effective));
      if (result.engine->poller_cpu_pct)
        table.footnotes.push_back(
            fmt::format("the kernel's polling thread used {:.0f}% of a CPU", *result.engine->poller_cpu_pct));
    }
    if (!result.unmet.empty())
      table.footnotes.push_back(fmt::format("not reached, {}: {}", load_text(result), result.unmet));
    for (const ReadFit& fit : result.fit) {
      std::string terms;
      for (const auto& [layer, b] : fit.b_us)
        terms += fmt::format(" + {:.2f} [{:.2f}, {:.2f}] x P{}", b, fit.b_lo_us.at(layer), fit.b_hi_us.at(layer), layer);
      table.footnotes.push_back(fmt::format("fit, {}: T{} = {:.0f} [{:.0f}, {:.0f}]{} us; R2 {:.4f}, RMSE {:.0f} us",
                                            load_text(result), fit.k, fit.a_us, fit.a_lo_us, fit.a_hi_us, terms,
                                            fit.r2.value_or(0), fit.rmse_us.value_or(0)));
      for (const std::string& note : residual_notes(result, fit)) table.footnotes.push_back(note);
    }
    if (result.zero_pages_share)
      table.footnotes.push_back(
          fmt::format("pages that end in zeros (holes, trimmed, never written): {:.1f}%", 100 * *result.zero_pages_share));
  }
  std::sort(table.footnotes.begin(), table.footnotes.end());
  table.footnotes.erase(std::unique(table.footnotes.begin(), table.footnotes.end()), table.footnotes.end());
  table.footnotes.push_back(
      "T: first page submitted until the layer's last page is in, slowest rank; submit: t = 0 until the layer's first page "
      "is "
      "submitted");
  if (needs > 0) table.footnotes.push_back(fmt::format("–: a p99 needs {} batches", needs));
  return table;
}

void deliver(Envelope& envelope, const ReadArguments& arguments, const std::vector<Table>& tables) {
  const TableFormat format = parse_table_format(arguments.format);
  if (arguments.redact) redact(envelope);
  if (!arguments.out.empty()) write_envelope(arguments.out, envelope);
  if (format == TableFormat::json) {
    fmt::print("{}", to_text(envelope));
  } else {
    for (const Table& table : tables) fmt::print("{}\n", render(table, format));
  }
  std::fflush(stdout);
  if (!arguments.out.empty()) fmt::print(stderr, "results: {}\n", arguments.out);
}

}  // namespace slacktier::cli
