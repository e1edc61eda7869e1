// The staged images a campaign reads: found on the disks named, or staged as files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "tier/image.hpp"

namespace slacktier {

struct ImageOptions {
  // Folders (image files are made and reused inside, one folder a disk), or staged images (files or block devices: their
  // number must be the placement's number of disks). Never written unless a folder.
  std::vector<std::string> disks;
  std::shared_ptr<const TableRows> rows;  // what images hold; null: rows generated with the campaign's seed, or the image's
  bool quiet = false;
};

class Images {
 public:
  // Prepares an image for every number of disks that the campaign's placements use, and asks the servers of those that read
  // from other nodes what they hold. A placement with more disks than folders
  // gets several files in one folder, and warnings() says so. Throws what stage_image and open_image throw.
  Images(const Campaign& campaign, const TableSpec& spec, const ImageOptions& options);

  // Paths of the image over `disks` disks.
  const std::vector<std::string>& paths(std::uint32_t disks) const;
  // Of all images, each once.
  std::vector<std::string> all_paths() const;
  // Stored pages of each layer of the spec; equal in all images of the campaign, so that every placement serves the same
  // rows.
  const std::vector<PageFold>& folds() const { return folds_; }
  const PageGeometry& geometry() const { return geometry_; }
  const TableRows& rows() const { return *rows_; }
  std::shared_ptr<const TableRows> shared_rows() const { return rows_; }
  const std::vector<Warning>& warnings() const { return warnings_; }
  // Servers that placements read from; empty: none.
  const std::vector<std::string>& servers() const { return servers_; }
  // Reads `sample` different pages of every image and compares them with the rows' origin. Throws CheckFailed naming the
  // first bad page, and what verify_image throws.
  void verify(const TableSpec& spec, std::uint64_t sample, bool quiet) const;
  // "2.0 GiB on 1 disk(s): DIR/…" per image, for a table's head and for provenance.
  std::vector<std::string> describe() const;

 private:
  void take(const Campaign& campaign, const TableSpec& spec, const ImageHeader& header, bool own_rows);

  std::map<std::uint32_t, std::vector<std::string>> images_;
  std::vector<std::string> servers_;
  std::vector<PageFold> folds_;
  PageGeometry geometry_;
  std::shared_ptr<const TableRows> rows_;
  std::vector<Warning> warnings_;
};

}  // namespace slacktier
