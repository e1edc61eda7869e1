#include "tests/bench/gpu/limits.hpp"

#include <array>

#include "platforms/kernel.hpp"

namespace slacktier {
namespace {

SLACKTIER_KERNEL nothing() {}

SLACKTIER_KERNEL move_rows(RowsArgs args) {
  const std::uint32_t parts = args.row_bytes / 8;
  const std::uint32_t at = kernel_block() * kernel_threads() + kernel_thread();
  if (at >= args.rows * parts) return;
  const std::uint32_t row = at / parts, part = at % parts;
  const Bytes8 bytes = *reinterpret_cast<const Bytes8*>(args.base + args.offsets[row] + 8 * part);
  if (16 * part < args.out_bytes)
    *reinterpret_cast<Bytes16*>(args.out + std::size_t{row} * args.out_bytes + 16 * part) =
        Bytes16{{bytes.word[0], bytes.word[1], bytes.word[0], bytes.word[1]}};
  else if (bytes.word[0] == 0x9E3779B9u && bytes.word[1] == 0x7F4A7C15u)
    args.out[0] = std::byte{1};  // the read may not be left out
}

SLACKTIER_KERNEL move_block(CopyArgs args) {
  const std::uint32_t at = kernel_block() * kernel_threads() + kernel_thread();
  Bytes8 bytes{};
  if (8 * at < args.read_bytes) bytes = *reinterpret_cast<const Bytes8*>(args.from + 8 * at);
  if (16 * at < args.written_bytes)
    *reinterpret_cast<Bytes16*>(args.out + 16 * at) = Bytes16{{bytes.word[0], bytes.word[1], bytes.word[0], bytes.word[1]}};
  else if (bytes.word[0] == 0x9E3779B9u && bytes.word[1] == 0x7F4A7C15u)
    args.out[0] = std::byte{1};
}

constexpr std::uint32_t threads = 256;

void launch_nothing(void* stream, const void*) { SLACKTIER_LAUNCH(nothing, 1, 32, stream); }
void launch_rows(void* stream, const void* raw) {
  const RowsArgs args = *static_cast<const RowsArgs*>(raw);
  SLACKTIER_LAUNCH(move_rows, (args.rows * (args.row_bytes / 8) + threads - 1) / threads, threads, stream, args);
}
void launch_copy(void* stream, const void* raw) {
  const CopyArgs args = *static_cast<const CopyArgs*>(raw);
  const std::uint32_t items = args.read_bytes / 8 > args.written_bytes / 16 ? args.read_bytes / 8 : args.written_bytes / 16;
  SLACKTIER_LAUNCH(move_block, (items + threads - 1) / threads, threads, stream, args);
}

}  // namespace

std::span<const ModuleImage> limit_modules() {
  static constexpr std::array kernels{KernelEntry{"limit.nothing", launch_nothing}, KernelEntry{"limit.rows", launch_rows},
                                      KernelEntry{"limit.copy", launch_copy}};
  static constexpr std::array images{ModuleImage{"cuda", kernels}};
  return images;
}

}  // namespace slacktier
