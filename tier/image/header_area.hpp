// The header area of one disk: two slots written in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tier/image.hpp"

namespace slacktier {

inline constexpr std::uint64_t header_slot_bytes = image_header_bytes / 2;

// What a slot stores of a header.
nlohmann::json header_json(const ImageHeader& header);
// The same back. Throws UsageError or a JSON exception naming the field that is missing or impossible.
ImageHeader header_from_json(const nlohmann::json& json);

// One slot's bytes, filled up with zeros to a multiple of 4 KiB. Throws UsageError when the segments do not fit.
std::vector<std::byte> encode_header(const ImageHeader& header, std::uint64_t sequence);

enum class AreaState {
  foreign,  // no slot has the magic: not an image, or nothing at all
  damaged,  // an image's, but no slot is whole, or of a version that this build does not read
  whole,
};

struct HeaderArea {
  AreaState state = AreaState::foreign;
  std::string problem;         // of a damaged one
  std::uint64_t sequence = 0;  // of the newest whole slot
  ImageHeader header;
};

// `area` is the beginning of a disk, up to image_header_bytes. Throws UsageError naming `path` and field when a slot with a
// good checksum holds no header of this version's form.
HeaderArea decode_header_area(std::span<const std::byte> area, const std::string& path);

}  // namespace slacktier
