// What the sources that read from other nodes share: which server holds a segment, and what makes a page whole. Private to
// tier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tier/image.hpp"
#include "tier/protocol.hpp"
#include "tier/source.hpp"

namespace slacktier {

class RemotePages {
 public:
  // `image` is what open_remote_image gave.
  RemotePages(const ImageHeader& image, const RemoteOptions& options);

  std::uint32_t page_bytes() const { return image_.geometry.page_bytes; }
  const PageGeometry& geometry() const { return image_.geometry; }
  bool records_only() const { return options_.granularity == Granularity::record; }
  // A record alone carries no checksum: its page's stamp is what can be compared.
  PageFault check(const ImageSegment& segment, std::uint64_t page, const std::byte* bytes, bool checksum) const {
    const std::span<const std::byte> view(bytes, page_bytes());
    return checksum && !records_only() ? check_page(view, page, segment.image, image_.nonce)
                                       : check_stamp(view, page, segment.image, image_.nonce);
  }
  // The records to ask for.
  std::uint64_t wanted(const PageRead& read) const { return records_only() ? read.records : whole_page; }

  const std::vector<std::string>& servers() const { return image_.paths; }
  protocol::View key() const { return key_; }
  // What a connection must find again: the same staging.
  const protocol::Wanted& wanted_image() const { return wanted_; }

  // Notes what a server holds, as its connection found it. Throws UsageError when that is not what `image` says.
  void learn(std::uint32_t server, const ImageHeader& held);
  struct Place {
    std::uint32_t server = 0, segment = 0;  // the segment's index on that server
  };
  Place place(const ImageSegment& segment) const;

 private:
  ImageHeader image_;
  RemoteOptions options_;
  std::vector<std::byte> key_;
  protocol::Wanted wanted_;
  std::vector<Place> places_;  // of image_'s segments
};

}  // namespace slacktier
