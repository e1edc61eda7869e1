#include "probe/cli/attached.hpp"

#include <fmt/format.h>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "probe/attached_steps.hpp"
#include "python/embedded.hpp"

namespace slacktier {
namespace {

constexpr const char* module = "slacktier.load";

// Requests that a server streams as long as this lives.
class HeldLoad {
 public:
  HeldLoad(const std::string& url, std::int64_t sessions)
      : model_(call_python(module, "start", {{"url", url}, {"sessions", sessions}}).at("model").get<std::string>()) {}
  ~HeldLoad() {
    try {
      call_python(module, "stop");
    } catch (const std::exception&) {  // its threads end with the process
    }
  }
  HeldLoad(const HeldLoad&) = delete;
  HeldLoad& operator=(const HeldLoad&) = delete;
  const std::string& model() const { return model_; }
  static std::string status() {
    const Json now = call_python(module, "status");
    std::string text = fmt::format("{} requests stream", now.at("streaming").get<int>());
    if (const auto failure = now.at("failure").get<std::string>(); !failure.empty())
      text += ", the last that failed: " + failure;
    return text;
  }
  // Until all of them stream. Throws EnvironmentError with what they do instead.
  static void await(std::int64_t sessions, double timeout_s) {
    const Nanos until = monotonic_clock().now() + static_cast<Nanos>(timeout_s * 1e9);
    while (call_python(module, "status").at("streaming").get<std::int64_t>() < sessions) {
      throw_if_interrupted();
      if (monotonic_clock().now() >= until)
        throw EnvironmentError(
            fmt::format("--load: of {} requests not all stream after {:.3g} s: {}", sessions, timeout_s, status()));
      monotonic_clock().sleep_until(monotonic_clock().now() + 20'000'000);
    }
  }

 private:
  std::string model_;
};

}  // namespace

void add_attach_options(CLI::App& command, AttachArguments& a) {
  command.add_option(
      "--attach", a.directory,
      "Probe a running engine through this directory: it has slacktier installed and SLACKTIER_ATTACH set to it");
  command.add_option("--ranks", a.ranks, "Tensor-parallel ranks of that engine; the slowest counts")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--delay-rank", a.delay_rank, "Delay this rank alone; default: all")->check(CLI::Range(0, 1023));
  command.add_option("--attach-timeout", a.timeout_s, "Seconds to wait for its ranks, and for a step of the batch")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_option(
      "--load", a.load,
      "Hold as many streaming requests as --batch at this OpenAI-compatible server; default: its own traffic");
}

void check_attach_arguments(const AttachArguments& attach, const WindowArguments& a, std::size_t batches) {
  if (attach.directory.empty()) {
    if (!attach.load.empty() || attach.delay_rank >= 0 || attach.ranks != 1)
      throw UsageError("--load, --ranks and --delay-rank are of a running engine: name its directory with --attach");
    return;
  }
  if (batches != 1)
    throw UsageError("--attach: one batch at a time; name the captured batch of its decode steps with --batch");
  if (a.injector == "device-clock") throw UsageError("--attach: an engine's layers are delayed by host nodes only");
  parse_table_format(a.format);
}

MeasuredWindows attached_windows(const AttachArguments& attach, const WindowArguments& a, WindowOptions options,
                                 ProbeSubject& subject) {
  std::unique_ptr<HeldLoad> load;
  AttachOptions to{attach.directory,  attach.ranks,     options.batch,
                   attach.delay_rank, attach.timeout_s, [] { return interrupted(); }};
  subject = {"attached engine", fmt::format("an engine of {} rank{}, attached", attach.ranks, attach.ranks == 1 ? "" : "s"),
             attach.ranks};
  if (attach.delay_rank >= 0) subject.label += fmt::format("; delays on rank {} alone", attach.delay_rank);
  try {
    if (!attach.load.empty()) load = std::make_unique<HeldLoad>(attach.load, options.batch);
    AttachedSteps steps(std::move(to));
    if (load) {
      HeldLoad::await(options.batch, attach.timeout_s);
      subject.model = load->model();
      subject.label += fmt::format("; {} requests held at it", options.batch);
    }
    options.layers = parse_layers(a.layers, steps.layers());
    options.began = monotonic_clock().now();
    return measure_attached(steps, steps.layers(), options);
  } catch (const EnvironmentError& error) {
    if (!load) throw;
    throw EnvironmentError(fmt::format("{}; of the requests held: {}", error.what(), HeldLoad::status()));
  }
}

}  // namespace slacktier
