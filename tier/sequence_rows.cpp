#include "tier/sequence_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "platforms/error.hpp"
#include "tier/gather.hpp"
#include "tier/hash.hpp"

namespace slacktier {

std::vector<std::uint32_t> sequence_rows(Device& device, const TableSpec& spec, std::size_t layer_index,
                                         std::span<const std::uint32_t> sequence) {
  constexpr std::size_t at_once = 65'536;
  const auto hash = make_hash(spec);
  const std::size_t columns = spec.rows_per_token(), layers = spec.layers.size();
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  const std::size_t batch = std::min(at_once, sequence.size());
  std::vector<std::uint32_t> result(sequence.size() * columns);
  if (sequence.empty()) return result;

  device.load_module(tier_modules());
  const auto stream = device.create_stream("hash");
  const auto context = device.allocate_host(batch * order * sizeof(std::uint32_t));
  const auto rows = device.allocate_device(layers * batch * columns * sizeof(std::uint32_t));
  const auto fetched = device.allocate_host(batch * columns * sizeof(std::uint32_t));
  HashArgs args;
  args.hash = hash.get();
  std::string kernel = "tier.hash";
  std::unique_ptr<Buffer> parameters;
  if (rows->host() == nullptr) {
    const KernelHash of_kernels = hash->for_kernels();
    if (of_kernels.kernel.empty())
      throw UsageError(fmt::format("table {}: hash {} has no kernel for {}; use --device cpu", spec.name, spec.hash,
                                   device.facts().backend));
    kernel = of_kernels.kernel;
    const auto staging = device.allocate_host(of_kernels.parameters.size());
    std::memcpy(staging->host(), of_kernels.parameters.data(), of_kernels.parameters.size());
    parameters = device.allocate_device(of_kernels.parameters.size());
    stream->copy(parameters->device(), staging->host(), of_kernels.parameters.size());
    stream->synchronize();
    args.parameters = static_cast<const std::byte*>(parameters->device());
  }
  args.context = static_cast<const std::uint32_t*>(context->device());
  args.rows = static_cast<std::uint32_t*>(rows->device());
  args.layers = static_cast<std::uint32_t>(layers);
  args.rows_per_token = static_cast<std::uint32_t>(columns);
  for (std::size_t first = 0; first < sequence.size(); first += batch) {
    const std::size_t tokens = std::min(batch, sequence.size() - first);
    gather_context(spec, sequence, first, tokens, static_cast<std::uint32_t*>(context->host()));
    args.tokens = static_cast<std::uint32_t>(tokens);
    stream->launch(kernel, args);
    const std::size_t n = tokens * columns;
    stream->copy(fetched->host(), args.rows + layer_index * n, n * sizeof(std::uint32_t));
    stream->synchronize();
    std::memcpy(result.data() + first * columns, fetched->host(), n * sizeof(std::uint32_t));
  }
  return result;
}

}  // namespace slacktier
