// SHA-256, by which files of samples are named and identities hidden.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace slacktier {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
// Of a file's bytes. Throws InputError when it cannot be opened or read.
std::string sha256_file(const std::filesystem::path& path);

}  // namespace slacktier
