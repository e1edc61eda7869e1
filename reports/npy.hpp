// Raw samples as NumPy .npy files (format 1.0, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace slacktier {

// A 1-D or 2-D array in C order. shape's product is the number of values.
struct NpyArray {
  std::vector<std::size_t> shape;
  std::variant<std::vector<double>, std::vector<float>, std::vector<std::int64_t>> values;

  // All values as double, whatever they are stored as.
  std::vector<double> as_double() const;
};

// A written file, as a result names it.
struct SampleFile {
  std::string file;    // relative to the result file's folder
  std::string sha256;  // of the whole file
};

// Writes `array` little-endian to `folder`/`name`, atomically, making the folder if need be; returns `name` and the hash.
// Throws std::logic_error when shape and values disagree or the shape is not 1-D or 2-D, std::system_error when writing
// fails.
SampleFile write_npy(const std::filesystem::path& folder, const std::string& name, const NpyArray& array);
SampleFile write_npy(const std::filesystem::path& folder, const std::string& name, std::span<const double> samples);

// Reads format 1.0 to 3.0 with dtype <f8, <f4 or <i8. Throws InputError naming file and field for anything else: Fortran
// order, other dtypes, more dimensions, a torn file, trailing bytes.
NpyArray read_npy(const std::filesystem::path& path);
// Reads `samples.file` in `folder` and checks its hash first. Throws InputError when they differ.
NpyArray read_npy(const std::filesystem::path& folder, const SampleFile& samples);

}  // namespace slacktier
