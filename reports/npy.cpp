#include "reports/npy.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "reports/error.hpp"
#include "reports/json.hpp"
#include "reports/sha256.hpp"

namespace slacktier {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are written as they lie in memory, little-endian");

constexpr std::string_view magic("\x93NUMPY", 6);

template <class T>
constexpr const char* dtype_of() {
  if constexpr (std::is_same_v<T, double>) return "<f8";
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, std::int64_t>) return "<i8";
}

std::size_t size_of(const std::vector<std::size_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

// The header's dictionary, a Python literal with three known keys, as numpy writes it.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::size_t> shape;
  };
  Header parse() {
    Header header;
    std::map<std::string, int> seen;
    take('{');
    while (!peek('}')) {
      const std::string key = quoted();
      ++seen[key];
      take(':');
      if (key == "descr") {
        if (!peek('\'') && !peek('"')) fail("descr", "is not one plain dtype");
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        fail(key, "is unknown");
      }
      if (!peek('}')) take(',');
    }
    take('}');
    space();
    if (!text_.empty()) fail("header", "has text behind the dictionary");
    for (const char* key : {"descr", "fortran_order", "shape"})
      if (seen[key] != 1) fail(key, seen[key] == 0 ? "is missing" : "appears twice");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& what) const {
    throw InputError(fmt::format("{}: .npy header: {} {}", file_, field, what));
  }
  void space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool peek(char c) {
    space();
    return !text_.empty() && text_.front() == c;
  }
  void take(char c) {
    if (!peek(c)) fail("header", fmt::format("lacks '{}'", c));
    text_.remove_prefix(1);
  }
  std::string quoted() {
    const char quote = peek('"') ? '"' : '\'';
    take(quote);
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail("header", "has a string without end");
    const std::string result(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(0, word.size()) == word) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    fail("fortran_order", "is neither True nor False");
  }
  std::vector<std::size_t> tuple() {
    std::vector<std::size_t> shape;
    take('(');
    while (!peek(')')) {
      std::size_t digits = 0, value = 0;
      for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
        if (digits == 15) fail("shape", "is too large");
        value = value * 10 + static_cast<std::size_t>(text_[digits] - '0');
      }
      if (digits == 0) fail("shape", "is not a tuple of numbers");
      text_.remove_prefix(digits);
      shape.push_back(value);
      if (!peek(')')) take(',');
    }
    take(')');
    return shape;
  }

  std::string_view text_;
  const std::string& file_;
};

template <class T>
std::vector<T> values_of(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

NpyArray parse_npy(std::string_view bytes, const std::string& file) {
  if (bytes.size() < 10 || bytes.substr(0, magic.size()) != magic)
    throw InputError(file + ": not an .npy file (its first bytes are not \\x93NUMPY)");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    throw InputError(fmt::format("{}: .npy format {}.{} is unknown; 1.0 to 3.0 are read", file, version, byte(7)));
  const std::size_t start = version == 1 ? 10 : 12;
  std::size_t header_bytes = byte(8) | byte(9) << 8;
  if (version > 1) {
    if (bytes.size() < start) throw InputError(file + ": torn in its .npy header");
    header_bytes |= byte(10) << 16 | byte(11) << 24;
  }
  if (bytes.size() - start < header_bytes) throw InputError(file + ": torn in its .npy header");
  const auto header = HeaderParser(bytes.substr(start, header_bytes), file).parse();
  if (header.fortran_order) throw InputError(file + ": .npy header: fortran_order must be False");
  if (header.shape.empty() || header.shape.size() > 2)
    throw InputError(fmt::format("{}: .npy header: shape has {} dimensions; 1 or 2 are read", file, header.shape.size()));

  const std::string_view data = bytes.substr(start + header_bytes);
  const std::size_t element = header.descr == "<f4" ? 4 : 8;
  const std::size_t rows = header.shape[0], columns = header.shape.size() > 1 ? header.shape[1] : 1;
  const bool huge = columns != 0 && rows > std::numeric_limits<std::size_t>::max() / element / columns;
  NpyArray array;
  array.shape = header.shape;
  if (header.descr != "<f8" && header.descr != "<f4" && header.descr != "<i8")
    throw InputError(fmt::format("{}: .npy header: descr '{}' is not read; <f8, <f4 and <i8 are", file, header.descr));
  if (huge || data.size() != size_of(header.shape) * element)
    throw InputError(fmt::format("{}: holds {} bytes of data, its shape asks for {}", file, data.size(),
                                 huge ? "more than fits memory" : std::to_string(size_of(header.shape) * element)));
  if (header.descr == "<f8") array.values = values_of<double>(data);
  if (header.descr == "<f4") array.values = values_of<float>(data);
  if (header.descr == "<i8") array.values = values_of<std::int64_t>(data);
  return array;
}

}  // namespace

std::vector<double> NpyArray::as_double() const {
  return std::visit(
      [](const auto& all) {
        std::vector<double> converted;
        converted.reserve(all.size());
        for (const auto value : all) converted.push_back(static_cast<double>(value));
        return converted;
      },
      values);
}

SampleFile write_npy(const std::filesystem::path& folder, const std::string& name, const NpyArray& array) {
  if (array.shape.empty() || array.shape.size() > 2) throw std::logic_error(name + ": a sample array has 1 or 2 dimensions");
  const std::string shape = array.shape.size() == 1 ? fmt::format("({},)", array.shape[0])
                                                    : fmt::format("({}, {})", array.shape[0], array.shape[1]);
  const std::string bytes = std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if (values.size() != size_of(array.shape))
          throw std::logic_error(fmt::format("{}: {} values for shape {}", name, values.size(), shape));
        std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", dtype_of<T>(), shape);
        // Data begin at a multiple of 64 bytes, so that the file can be mapped.
        header.append(63 - (magic.size() + 4 + header.size()) % 64, ' ') += '\n';
        std::string file(magic);
        file += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
        file += header;
        file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
        return file;
      },
      array.values);
  std::filesystem::create_directories(folder.empty() ? "." : folder);
  write_text_file(folder / name, bytes);
  return {name, sha256_hex(bytes)};
}

SampleFile write_npy(const std::filesystem::path& folder, const std::string& name, std::span<const double> samples) {
  return write_npy(folder, name, NpyArray{{samples.size()}, std::vector<double>(samples.begin(), samples.end())});
}

NpyArray read_npy(const std::filesystem::path& path) { return parse_npy(read_text_file(path), path.string()); }

NpyArray read_npy(const std::filesystem::path& folder, const SampleFile& samples) {
  const std::filesystem::path path = folder / samples.file;
  const std::string bytes = read_text_file(path);
  const std::string hash = sha256_hex(bytes);
  if (hash != samples.sha256)
    throw InputError(fmt::format("{}: its SHA-256 is {}, the result names {}: not the samples it was made from",
                                 path.string(), hash, samples.sha256));
  return parse_npy(bytes, path.string());
}

}  // namespace slacktier
