#include "tier/output.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "platforms/error.hpp"

namespace slacktier {

const char* to_string(OutputFormat output) { return output == OutputFormat::fp32 ? "fp32" : "bf16"; }

OutputFormat parse_output(const std::string& text, const std::string& where) {
  if (text == "bf16") return OutputFormat::bf16;
  if (text == "fp32") return OutputFormat::fp32;
  throw UsageError(fmt::format("{}: '{}'; use bf16 or fp32", where, text));
}

}  // namespace slacktier
