// Page source `pread`: one blocking direct read at a time on each thread. The labelled fallback where io_uring is refused.
#include <fmt/format.h>

#include <cstdint>

#include "tier/sources/readers.hpp"

namespace slacktier {
namespace {

class PreadSource final : public PageSource {
 public:
  PreadSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header),
        pool_(pool),
        options_(options),
        readers_("pread", disks_, options_, [this](Share& share) { read_share(share); }) {}

  void submit(ReadBatch& batch) override { readers_.submit(batch); }

  std::string describe() const override {
    return fmt::format("pread O_DIRECT, {} thread(s) x {} disk(s), one read at a time each", options_.threads,
                       disks_.count());
  }

 private:
  void read_share(Share& share) {
    ReadBatch& batch = *share.batch;
    for (std::uint32_t i; (i = share.next(disks_)) != UINT32_MAX;) {
      note_submission(batch);
      const PageRead read = batch.reads[i];
      std::byte* page = pool_.page(read.buffer);
      end_read(batch, i, disks_.read(share.disk, *batch.segment, read.page, page), page, disks_, options_);
    }
    finish_share(batch, monotonic_clock().now());
  }

  OpenDisks disks_;
  const PagePool& pool_;
  SourceOptions options_;
  ReaderThreads readers_;  // last: its threads use the others
};

}  // namespace

std::unique_ptr<PageSource> make_pread_source(const ImageHeader& header, const PagePool& pool,
                                              const SourceOptions& options) {
  return std::make_unique<PreadSource>(header, pool, options);
}

}  // namespace slacktier
