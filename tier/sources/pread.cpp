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
        readers_("pread", disks_, options_, [this](Share& share) { read_pages(share, disks_, pool_, options_); }) {}

  void submit(ReadBatch& batch) override { readers_.submit(batch); }

  std::string describe() const override {
    return fmt::format("pread O_DIRECT, {} thread(s) x {} disk(s), one read at a time each", options_.threads,
                       disks_.count());
  }

 private:
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
