#include "tier/remote/remote_pages.hpp"

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier {

RemotePages::RemotePages(const ImageHeader& image, const RemoteOptions& options)
    : image_(image), options_(options), key_(load_key(options.key_file)), places_(image.segments.size()) {
  wanted_.fingerprint = image.fingerprint;
  wanted_.origin = image.origin;
  wanted_.shard_map = to_string(image.shard_map);
  wanted_.ranks = image.ranks;
  wanted_.nonce = image.nonce;
}

void RemotePages::learn(std::uint32_t server, const ImageHeader& held) {
  for (std::uint32_t s = 0; s < held.segments.size(); ++s) {
    const ImageSegment& is = held.segments[s];
    for (std::size_t i = 0; i < image_.segments.size(); ++i) {
      const ImageSegment& should = image_.segments[i];
      if (is.layer != should.layer || is.rank != should.rank) continue;
      if (is.image != should.image || is.stored_pages != should.stored_pages)
        throw UsageError(fmt::format("{}: layer {} rank {} has {} pages there, the run wants {} of another image",
                                     servers()[server], is.layer, is.rank, is.stored_pages, should.stored_pages));
      places_[i] = {server, s};
    }
  }
}

RemotePages::Place RemotePages::place(const ImageSegment& segment) const {
  for (std::size_t i = 0; i < image_.segments.size(); ++i)
    if (image_.segments[i].layer == segment.layer && image_.segments[i].rank == segment.rank) return places_[i];
  return {};
}

}  // namespace slacktier
