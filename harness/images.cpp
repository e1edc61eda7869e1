#include "harness/images.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "platforms/error.hpp"
#include "platforms/progress.hpp"
#include "tier/remote_image.hpp"
#include "tier/resident_table.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace fs = std::filesystem;
namespace {

// File names say what the image holds, so that several campaigns share a folder.
std::vector<std::string> image_files(const Campaign& campaign, const TableSpec& spec, std::uint32_t disks,
                                     std::uint64_t bytes, const ImageOptions& options) {
  const std::vector<std::string>& folders = options.disks;
  const std::string rows = options.rows ? fmt::format("-{:016x}", options.rows->identity()) : "";
  std::vector<std::string> files;
  for (std::uint32_t d = 0; d < disks; ++d) {
    const fs::path folder = folders[d % folders.size()];
    files.push_back(
        (folder / fmt::format("{}{}-{}-{}of{}-{}MiB-{}of{}.slacktier", spec.name, rows, to_string(campaign.shard_map),
                              campaign.rank, campaign.ranks, bytes >> 20, d, disks))
            .string());
  }
  return files;
}

bool matches(const ImageHeader& header, const Campaign& campaign, const TableSpec& spec, const TableRows& rows) {
  return header.complete && header.fingerprint == spec.fingerprint() && header.origin == rows.describe() &&
         header.ranks == campaign.ranks && header.shard_map == campaign.shard_map &&
         std::any_of(header.segments.begin(), header.segments.end(), [&](const auto& s) { return s.rank == campaign.rank; });
}

void stage(const Campaign& campaign, const TableSpec& spec, const std::vector<std::string>& files, std::uint64_t bytes,
           std::uint64_t page_multiple, const ImageOptions& images) {
  StageOptions options;
  options.disks = files;
  options.shard_map = campaign.shard_map;
  options.ranks = campaign.ranks;
  options.only_ranks = {campaign.rank};
  // One number of stored pages for every number of disks: a multiple of all of them, headers on top.
  const std::uint64_t page = make_page_geometry(options.page_bytes, spec.row_bytes).page_bytes;
  const std::uint64_t per_layer = bytes / spec.layers.size() / page / page_multiple * page_multiple;
  options.max_bytes = per_layer * page * spec.layers.size() + files.size() * image_header_bytes;
  options.seed = campaign.seed;
  options.rows = images.rows;
  options.progress = watch_progress(fmt::format("staging {}", fs::path(files.front()).filename().string()),
                                    ProgressUnit::bytes, images.quiet);
  stage_image(spec, options);
}

}  // namespace

Images::Images(const Campaign& campaign, const TableSpec& spec, const ImageOptions& options)
    : rows_(options.rows ? options.rows : generated_table(spec, campaign.seed)) {
  geometry_ = make_page_geometry(4096, spec.row_bytes);
  std::set<std::uint32_t> counts;
  std::optional<RemoteOptions> remote;
  for (const auto& placement : campaign.placements)
    for (const auto& [k, layer] : placement.layers)
      if (is_remote_source(layer.source)) {
        if (remote && remote->connect != layer.remote.connect)
          throw UsageError(
              fmt::format("placement {}: layer {} reads from {}, another placement from {}: a campaign has one set "
                          "of servers",
                          placement.name, k, layer.remote.connect, remote->connect));
        remote = layer.remote;
      } else if (!is_resident_source(layer.source)) {
        counts.insert(layer.disks);
      }
  if (remote) {
    protocol::Wanted wanted = wanted_table(spec, campaign.shard_map, campaign.ranks, *rows_);
    if (!options.rows) wanted.origin.clear();  // the servers bring their own seed
    const ImageHeader header = open_remote_image(*remote, wanted);
    servers_ = header.paths;
    take(campaign, spec, header, !options.rows);
  }
  const bool folders =
      std::all_of(options.disks.begin(), options.disks.end(), [](const auto& d) { return fs::is_directory(d); });
  std::uint64_t page_multiple = 1;
  for (const std::uint32_t disks : counts) page_multiple = std::lcm(page_multiple, std::uint64_t{disks});
  for (const std::uint32_t disks : counts) {
    if (folders) {
      if (disks > options.disks.size())
        warnings_.push_back({"disks_emulated",
                             fmt::format("{} disks emulated by {} files on {} disk(s): their reads share one device", disks,
                                         disks, options.disks.size()),
                             ""});
      const auto files = image_files(campaign, spec, disks, campaign.image_bytes, options);
      const bool there = std::all_of(files.begin(), files.end(), [](const auto& f) { return fs::exists(f); });
      bool ready = false;
      if (there) {
        try {
          ready = matches(read_image_header(files), campaign, spec, *rows_);
        } catch (const UsageError&) {
          ready = false;  // a file that is no image is refused by the staging below
        }
      }
      if (!ready) stage(campaign, spec, files, campaign.image_bytes, page_multiple, options);
      images_[disks] = files;
    } else {
      if (options.disks.size() != disks)
        throw UsageError(
            fmt::format("a placement reads from {} disk(s), {} image(s) are given with --disk: give folders, or one image "
                        "of each number of disks",
                        disks, options.disks.size()));
      images_[disks] = options.disks;
    }
    take(campaign, spec, open_image(images_[disks], spec), !options.rows);
  }
  if (folds_.empty())
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const Shard shard = make_shard(spec, l, campaign.shard_map, campaign.ranks, campaign.rank);
      const std::uint64_t share = campaign.image_bytes / spec.layers.size() / geometry_.page_bytes;
      folds_.push_back({std::min(geometry_.pages(shard.rows), std::max<std::uint64_t>(share, 1))});
    }
}

// Pages and rows of an image, the same in all of a campaign's. `own_rows`: it brings its own seed.
void Images::take(const Campaign& campaign, const TableSpec& spec, const ImageHeader& header, bool own_rows) {
  std::vector<PageFold> folds;
  for (const auto& layer : spec.layers) folds.push_back({header.segment(layer.layer, campaign.rank).stored_pages});
  const auto same = [](const PageFold& a, const PageFold& b) { return a.stored_pages == b.stored_pages; };
  if (!folds_.empty() && !std::equal(folds.begin(), folds.end(), folds_.begin(), same))
    throw UsageError("the images of one campaign hold different numbers of pages: stage, or serve, them with one --size");
  folds_ = folds;
  geometry_ = header.geometry;
  if (own_rows) rows_ = generated_table(spec, header.seed);
}

const std::vector<std::string>& Images::paths(std::uint32_t disks) const { return images_.at(disks); }

void Images::verify(const TableSpec& spec, std::uint64_t sample, bool quiet) const {
  for (const auto& image : images_) {
    const std::vector<std::string>& files = image.second;
    const VerifyReport report = verify_image(
        spec, files, sample,
        watch_progress(fmt::format("verifying {}", fs::path(files.front()).filename().string()), ProgressUnit::steps, quiet),
        0, rows_);
    if (report.bad > 0)
      throw CheckFailed(fmt::format("{} of {} pages read are not what they should be; the first: {}", report.bad,
                                    report.pages, report.first_bad.front()));
  }
}

std::vector<std::string> Images::all_paths() const {
  std::set<std::string> all;
  for (const auto& [disks, files] : images_) all.insert(files.begin(), files.end());
  return {all.begin(), all.end()};
}

std::vector<std::string> Images::describe() const {
  std::vector<std::string> lines;
  for (const auto& [disks, files] : images_)
    lines.push_back(fmt::format("image over {} disk(s): {}", disks, fmt::join(files, ", ")));
  if (!servers_.empty()) lines.push_back(fmt::format("table served by {}", fmt::join(servers_, ", ")));
  return lines;
}

}  // namespace slacktier
