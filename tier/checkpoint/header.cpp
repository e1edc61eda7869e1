#include "tier/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "platforms/error.hpp"

namespace slacktier {

namespace {

struct ElementType {
  std::string_view name;
  std::uint64_t bits;
};
constexpr std::array element_types{
    ElementType{"BOOL", 8},    ElementType{"F4", 4},          ElementType{"F6_E2M3", 6},     ElementType{"F6_E3M2", 6},
    ElementType{"U8", 8},      ElementType{"I8", 8},          ElementType{"F8_E5M2", 8},     ElementType{"F8_E4M3", 8},
    ElementType{"F8_E8M0", 8}, ElementType{"F8_E4M3FNUZ", 8}, ElementType{"F8_E5M2FNUZ", 8}, ElementType{"I16", 16},
    ElementType{"U16", 16},    ElementType{"F16", 16},        ElementType{"BF16", 16},       ElementType{"I32", 32},
    ElementType{"U32", 32},    ElementType{"F32", 32},        ElementType{"C64", 64},        ElementType{"F64", 64},
    ElementType{"I64", 64},    ElementType{"U64", 64},
};

// A name from a file, fit to be printed: short, and without control characters.
std::string shown(const std::string& name) {
  std::string text;
  for (const char c : name.substr(0, 100)) text += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return name.size() > 100 ? text + "..." : text;
}

// Takes the parser's events; whatever the format does not have is refused where it stands, so nothing is built of it.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  std::map<std::string, Tensor> take() { return std::move(tensors_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(number_integer_t value) override { unexpected(fmt::format("the number {}", value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected("the number " + shown(text)); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) unexpected(fmt::format("the number {}", value));
    if (place_ == Place::offsets && offsets_.size() == 2) fail("has more than two data_offsets");
    (place_ == Place::shape ? tensor_.shape : offsets_).push_back(value);
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || field_ != "dtype") unexpected("the text \"" + shown(text) + "\"");
    tensor_.dtype = text;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = name_ == "__metadata__" ? Place::metadata : Place::tensor;
      seen_.clear();
      tensor_ = {};
      offsets_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::top) {
      name_ = text;
      if (!names_.insert(text).second) fail("stands twice");
      return true;
    }
    if (!seen_.insert(text).second) fail(fmt::format("has the field \"{}\" twice", shown(text)));
    field_ = text;
    if (place_ == Place::tensor && text != "dtype" && text != "shape" && text != "data_offsets")
      fail(fmt::format("has the unknown field \"{}\"", shown(text)));
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!seen_.contains(field)) fail(fmt::format("has no {}", field));
      }
      if (offsets_.size() != 2) fail("has not two data_offsets");
      tensor_.begin = offsets_[0];
      tensor_.end = offsets_[1];
      tensors_.emplace(name_, std::move(tensor_));
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || field_ == "dtype") unexpected("a list");
    place_ = field_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    throw UsageError(fmt::format("{}: header is not JSON at its byte {}: {}", where_, position, shown(error.what())));
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };

  [[noreturn]] void fail(const std::string& problem) const {
    throw UsageError(fmt::format("{}: tensor \"{}\" {}", where_, shown(name_), problem));
  }
  [[noreturn]] void unexpected(const std::string& what) const {
    if (place_ == Place::outside) throw UsageError(where_ + ": header is no JSON object");
    fail(fmt::format("has {} where it cannot be", what));
  }

  const std::string& where_;
  Place place_ = Place::outside;
  std::string name_, field_;
  std::set<std::string> names_, seen_;
  Tensor tensor_;
  std::vector<std::uint64_t> offsets_;
  std::map<std::string, Tensor> tensors_;
};

// Bytes of a tensor by type and shape.
std::uint64_t tensor_bytes(const Tensor& tensor, const std::string& where, const std::string& name) {
  const auto fail = [&](const std::string& problem) {
    throw UsageError(fmt::format("{}: tensor \"{}\" {}", where, shown(name), problem));
  };
  const auto type =
      std::find_if(element_types.begin(), element_types.end(), [&](const ElementType& t) { return t.name == tensor.dtype; });
  if (type == element_types.end()) fail(fmt::format("is of the unknown dtype \"{}\"", shown(tensor.dtype)));
  std::uint64_t bits = type->bits;
  for (const std::uint64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bits, extent, &bits)) fail("has a shape of more elements than there can be");
  }
  if (bits % 8 != 0) fail("does not fill whole bytes");
  return bits / 8;
}

}  // namespace

std::uint64_t safetensors_json_bytes(std::span<const std::byte, 8> length, std::uint64_t file_bytes,
                                     const std::string& where) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < 8; ++i) bytes |= std::to_integer<std::uint64_t>(length[i]) << (8 * i);
  if (bytes > safetensors_header_limit) {
    throw UsageError(fmt::format("{}: is no safetensors file: its header would have {} bytes, more than the {} allowed",
                                 where, bytes, safetensors_header_limit));
  }
  if (file_bytes < 8 || bytes > file_bytes - 8) {
    throw UsageError(fmt::format("{}: is truncated: its header has {} bytes, the whole file {}", where, bytes, file_bytes));
  }
  return bytes;
}

std::map<std::string, Tensor> parse_safetensors_json(std::span<const std::byte> json, std::uint64_t file_bytes,
                                                     const std::string& where) {
  const auto* const text = reinterpret_cast<const char*>(json.data());
  if (json.empty() || text[0] != '{') throw UsageError(where + ": is no safetensors file: its header is no JSON object");
  // The parser takes a NUL for the end of its input, and what follows would be ignored.
  if (const void* nul = std::memchr(text, 0, json.size()))
    throw UsageError(
        fmt::format("{}: header is not JSON at its byte {}: a NUL", where, static_cast<const char*>(nul) - text));
  HeaderReader reader(where);
  nlohmann::json::sax_parse(text, text + json.size(), &reader);
  std::map<std::string, Tensor> tensors = reader.take();

  const std::uint64_t data = 8 + json.size();
  std::vector<std::pair<const std::string*, Tensor*>> by_offset;
  for (auto& [name, tensor] : tensors) by_offset.emplace_back(&name, &tensor);
  std::sort(by_offset.begin(), by_offset.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::uint64_t next = 0;
  for (const auto& entry : by_offset) {
    const std::string& name = *entry.first;
    Tensor* const tensor = entry.second;
    const std::uint64_t bytes = tensor_bytes(*tensor, where, name);
    const auto fail = [&](const std::string& problem) {
      throw UsageError(fmt::format("{}: tensor \"{}\" {}", where, shown(name), problem));
    };
    if (tensor->end < tensor->begin || tensor->end - tensor->begin != bytes)
      fail(fmt::format("has the bytes [{}, {}), its type and shape need {}", tensor->begin, tensor->end, bytes));
    if (tensor->begin != next)
      fail(fmt::format("begins at byte {} of the data, {} byte {}", tensor->begin,
                       tensor->begin < next ? "inside another that ends at" : "after a gap from", next));
    if (tensor->end > file_bytes - data)
      fail(fmt::format("ends at byte {} of the data, the file at {}: it is truncated", tensor->end, file_bytes - data));
    next = tensor->end;
    tensor->begin += data;
    tensor->end += data;
  }
  if (next != file_bytes - data)
    throw UsageError(fmt::format("{}: has {} bytes behind its last tensor", where, file_bytes - data - next));
  return tensors;
}

}  // namespace slacktier
