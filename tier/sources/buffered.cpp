// Page source `buffered`: ordinary reads through the page cache. All pages of a batch are announced first, so that the
// kernel reads them side by side while the thread waits for one after another.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdint>

#include "tier/sources/readers.hpp"

namespace slacktier {
namespace {

class BufferedSource final : public PageSource {
 public:
  BufferedSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header, OpenDisks::Access::page_cache),
        pool_(pool),
        options_(options),
        readers_("buffered", disks_, options_, [this](Share& share) { read_share(share); }) {
    if (options.drop_cache) disks_.drop_cache();
  }

  void submit(ReadBatch& batch) override { readers_.submit(batch); }

  std::string describe() const override {
    return fmt::format("page cache ({}), {} thread(s) x {} disk(s){}",
                       options_.hints ? "WILLNEED for each batch" : "one read at a time each", options_.threads,
                       disks_.count(), options_.drop_cache ? ", cache dropped at the start" : "");
  }
  std::string activity() const override { return disks_.cache_state(); }

 private:
  void read_share(Share& share) {
    ReadBatch& batch = *share.batch;
    if (options_.hints) {
      Share ahead = share;
      for (std::uint32_t i; (i = ahead.next(disks_)) != UINT32_MAX;) {
        note_submission(batch);
        // A hint that is refused costs time, not a page.
        ::posix_fadvise(disks_.descriptor(share.disk),
                        static_cast<off_t>(disks_.offset(*batch.segment, batch.reads[i].page)), disks_.page_bytes(),
                        POSIX_FADV_WILLNEED);
      }
    }
    read_pages(share, disks_, pool_, options_);
  }

  OpenDisks disks_;
  const PagePool& pool_;
  SourceOptions options_;
  ReaderThreads readers_;  // last: its threads use the others
};

}  // namespace

std::unique_ptr<PageSource> make_buffered_source(const ImageHeader& header, const PagePool& pool,
                                                 const SourceOptions& options) {
  return std::make_unique<BufferedSource>(header, pool, options);
}

}  // namespace slacktier
