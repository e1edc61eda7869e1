// What runs beside a measurement on the same disks and CPUs, and what it did.
#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "iobench/cli/commands.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"

namespace slacktier::cli {
namespace {

// Names of the kernel's threads that submit for SQPOLL rings.
constexpr const char* poller_threads = "iou-sqp-";

std::string write_folder(const ReadArguments& arguments, const ReadPlan& plan) {
  if (!arguments.background_folder.empty()) return arguments.background_folder;
  const std::filesystem::path image = std::filesystem::absolute(plan.images.front().paths.front());
  if (std::filesystem::is_block_file(image))
    throw UsageError(
        fmt::format("--background-write: nothing is written to {}, which is a device; name a folder of a file "
                    "system on that disk with --background-folder",
                    image.string()));
  return image.parent_path().string();
}

}  // namespace

Neighbours::Neighbours(const ReadArguments& arguments, const ReadPlan& plan, const MeasureOptions& options)
    : tenant_processes_(arguments.tenant_processes),
      mb_per_s_(arguments.background_mb_per_s),
      poller_cpu_(arguments.poller_cpu) {
  const std::string folder = mb_per_s_ > 0 ? write_folder(arguments, plan) : "";
  if (tenant_processes_ > 1)
    tenants_ = std::make_unique<TenantProcesses>(tenant_processes_ - 1, plan.load, plan.pages, options);
  if (mb_per_s_ > 0) writes_ = std::make_unique<BackgroundWrite>(folder, mb_per_s_);
}

Neighbours::~Neighbours() = default;

void Neighbours::begin() {
  began_ = monotonic_clock().now();
  poller_began_ = thread_cpu_time(poller_threads);
}

void Neighbours::end(ReadResult& result) {
  result.tenants *= tenant_processes_;
  if (poller_cpu_ >= 0 && result.engine)
    result.engine->poller_cpu_pct = 100.0 * static_cast<double>(thread_cpu_time(poller_threads) - poller_began_) /
                                    static_cast<double>(monotonic_clock().now() - began_);
}

void Neighbours::stop(Envelope& envelope) {
  const auto label = [&](const std::string& text) { envelope.settings["labels"].push_back(text); };
  if (writes_) {
    const double reached = writes_->stop();
    label(fmt::format("meanwhile {:.1f} MB/s were written, {:.1f} asked for", reached, mb_per_s_));
    if (reached < 0.9 * mb_per_s_)
      envelope.warnings.push_back(
          {"background_slow",
           fmt::format("the disk took {:.1f} of the {:.1f} MB/s of --background-write", reached, mb_per_s_), ""});
  }
  if (!tenants_) return;
  const auto reports = tenants_->stop();
  std::uint64_t batches = 0;
  double sum = 0;
  for (const auto& report : reports) {
    batches += report.batches;
    sum += report.batch_us / static_cast<double>(reports.size());
  }
  label(fmt::format("tenants: {} processes of their own; the others read {} batches, {:.2f} ms each on average",
                    tenant_processes_, batches, sum / 1e3));
}

}  // namespace slacktier::cli
