#include "tier/image/header_area.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"

namespace slacktier {

namespace {

struct Slot {
  std::array<char, 8> magic{'S', 'L', 'A', 'C', 'K', 'I', 'M', 'G'};
  std::uint32_t version = image_version;
  std::uint32_t length = 0;
  std::uint64_t sequence = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Slot) == 32);

std::uint64_t slot_checksum(const Slot& slot, std::span<const std::byte> json) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &slot, offsetof(Slot, checksum));
  XXH3_64bits_update(&state, json.data(), json.size());
  return XXH3_64bits_digest(&state);
}

// 64-bit identities exceed what JSON numbers hold in other readers.
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }
std::uint64_t from_hex(const nlohmann::json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }

}  // namespace

ImageHeader header_from_json(const nlohmann::json& json) {
  ImageHeader header;
  json.at("table").get_to(header.table);
  json.at("fingerprint").get_to(header.fingerprint);
  json.at("origin").get_to(header.origin);
  json.at("seed").get_to(header.seed);
  header.nonce = from_hex(json.at("nonce"));
  header.shard_map = parse_shard_map(json.at("shard_map").get<std::string>());
  json.at("ranks").get_to(header.ranks);
  header.geometry =
      make_page_geometry(json.at("page_bytes").get<std::uint32_t>(), json.at("row_bytes").get<std::uint32_t>());
  json.at("disks").get_to(header.disks);
  json.at("disk").get_to(header.disk);
  json.at("complete").get_to(header.complete);
  json.at("staged_bytes").get_to(header.staged_bytes);
  for (const nlohmann::json& item : json.at("segments")) {
    ImageSegment s;
    item.at("layer").get_to(s.layer);
    item.at("rank").get_to(s.rank);
    item.at("rows").get_to(s.rows);
    item.at("pages").get_to(s.pages);
    item.at("stored_pages").get_to(s.stored_pages);
    item.at("base").get_to(s.base);
    s.image = from_hex(item.at("image"));
    if (s.stored_pages == 0 || s.stored_pages > s.pages || s.base % 4096 != 0) {
      throw UsageError(fmt::format("segment of layer {}, rank {}: impossible geometry", s.layer, s.rank));
    }
    header.segments.push_back(s);
  }
  if (header.disks == 0 || header.disk >= header.disks) throw UsageError("field \"disk\": not one of \"disks\"");
  return header;
}

nlohmann::json header_json(const ImageHeader& header) {
  nlohmann::json segments = nlohmann::json::array();
  for (const ImageSegment& s : header.segments) {
    segments.push_back({{"layer", s.layer},
                        {"rank", s.rank},
                        {"rows", s.rows},
                        {"pages", s.pages},
                        {"stored_pages", s.stored_pages},
                        {"base", s.base},
                        {"image", hex(s.image)}});
  }
  return {{"table", header.table},
          {"fingerprint", header.fingerprint},
          {"origin", header.origin},
          {"seed", header.seed},
          {"nonce", hex(header.nonce)},
          {"shard_map", to_string(header.shard_map)},
          {"ranks", header.ranks},
          {"page_bytes", header.geometry.page_bytes},
          {"row_bytes", header.geometry.row_bytes},
          {"disks", header.disks},
          {"disk", header.disk},
          {"complete", header.complete},
          {"staged_bytes", header.staged_bytes},
          {"segments", segments}};
}

std::vector<std::byte> encode_header(const ImageHeader& header, std::uint64_t sequence) {
  const std::string json = header_json(header).dump();
  Slot slot;
  slot.length = static_cast<std::uint32_t>(json.size());
  slot.sequence = sequence;
  if (sizeof slot + json.size() > header_slot_bytes) {
    throw UsageError(fmt::format("{} segments do not fit an image's header: stage fewer ranks per image (--rank)",
                                 header.segments.size()));
  }
  slot.checksum = slot_checksum(slot, std::as_bytes(std::span(json)));
  std::vector<std::byte> bytes((sizeof slot + json.size() + 4095) / 4096 * 4096);
  std::memcpy(bytes.data(), &slot, sizeof slot);
  std::memcpy(bytes.data() + sizeof slot, json.data(), json.size());
  return bytes;
}

HeaderArea decode_header_area(std::span<const std::byte> area, const std::string& path) {
  HeaderArea result;
  std::span<const std::byte> json;
  for (std::uint64_t at = 0; at + sizeof(Slot) <= area.size(); at += header_slot_bytes) {
    Slot slot;
    std::memcpy(&slot, area.data() + at, sizeof slot);
    if (slot.magic != Slot{}.magic) continue;
    if (result.state == AreaState::foreign) {
      result.state = AreaState::damaged;
      result.problem = "its header is damaged (checksum)";
    }
    const auto body = area.subspan(at + sizeof slot);
    if (slot.length > body.size() || slot_checksum(slot, body.first(slot.length)) != slot.checksum) continue;
    if (result.state == AreaState::whole && slot.sequence < result.sequence) continue;
    if (slot.version != image_version) {
      result.problem = fmt::format("its header has version {}, this build reads version {}", slot.version, image_version);
      continue;
    }
    result.state = AreaState::whole;
    result.sequence = slot.sequence;
    json = body.first(slot.length);
  }
  if (result.state != AreaState::whole) return result;
  try {
    const char* const text = reinterpret_cast<const char*>(json.data());
    result.header = header_from_json(nlohmann::json::parse(text, text + json.size()));
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("{}: image header: {}", path, error.what()));
  }
  return result;
}

}  // namespace slacktier
