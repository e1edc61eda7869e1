// In which numbers a gather delivers rows.
#pragma once

#include <cstdint>
#include <string>

namespace slacktier {

enum class OutputFormat : std::uint32_t {
  bf16,  // as models compute with them
  fp32,  // before the rounding to BF16: exact unless a value overflows
};

// Bytes of one delivered value.
constexpr std::uint32_t output_bytes(OutputFormat output) { return output == OutputFormat::fp32 ? 4 : 2; }

const char* to_string(OutputFormat output);
// "bf16" or "fp32"; throws UsageError naming `where`.
OutputFormat parse_output(const std::string& text, const std::string& where);

}  // namespace slacktier
