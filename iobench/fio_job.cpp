#include "iobench/fio_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

namespace slacktier {

std::string fio_job(const LoadOptions& load, const std::vector<LayerPages>& pages) {
  std::uint32_t batch = 0;
  for (const LayerPages& layer : pages) batch += layer.pages;
  const auto threads = static_cast<std::uint32_t>(load.settings.threads);
  std::string job = "; the load of slacktier-iobench run, one section a disk; run it with: fio --readonly FILE\n[global]\n";
  std::uint64_t page_bytes = 4096;
  for (const ImageHeader& image : load.images) page_bytes = image.geometry.page_bytes;
  const bool buffered = load.source == "buffered" || load.source == "mmap" || !load.settings.direct;
  job += fmt::format("ioengine={}\n", load.source == "pread" ? "psync" : load.source == "mmap" ? "mmap" : "io_uring");
  job += fmt::format("rw=randread\nbs={}\ndirect={}\nnorandommap\nrandrepeat=1\nrandseed={}\n", page_bytes, buffered ? 0 : 1,
                     load.seed);
  job += "time_based\nruntime=20\nthread\ngroup_reporting\ninvalidate=0\n";
  if (load.source == "uring") job += "fixedbufs\nregisterfiles\n";
  for (std::size_t i = 0; i < load.images.size(); ++i) {
    const ImageHeader& image = load.images[i];
    // Only the layers that are read.
    std::uint64_t begin = UINT64_MAX, end = 0;
    for (const ImageSegment& segment : image.segments) {
      if (std::none_of(pages.begin(), pages.end(), [&](const auto& layer) { return layer.layer == segment.layer; }))
        continue;
      begin = std::min(begin, segment.base);
      const std::uint64_t stored = load.span_pages ? std::min(load.span_pages, segment.stored_pages) : segment.stored_pages;
      end = std::max(end, segment.base + stored / image.paths.size() * page_bytes);
    }
    const std::uint32_t ranks_here = (load.ranks + static_cast<std::uint32_t>(load.images.size() - i) - 1) /
                                     static_cast<std::uint32_t>(load.images.size());
    for (std::size_t d = 0; d < image.paths.size(); ++d) {
      const std::uint64_t share = std::max<std::uint64_t>(1, batch / image.paths.size() / threads);
      job += fmt::format("\n[{}]\nfilename={}\noffset={}\nsize={}\nnumjobs={}\n",
                         i == 0 && d == 0 ? "disk" : fmt::format("disk{}-{}", i, d), image.paths[d], begin, end - begin,
                         threads * ranks_here);
      if (load.source != "pread" && load.source != "mmap")
        job += fmt::format("iodepth={}\niodepth_batch={}\niodepth_batch_complete_min={}\n", share, share, share);
    }
  }
  return job;
}

}  // namespace slacktier
