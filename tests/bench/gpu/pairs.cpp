#include <cstdint>
#include <fstream>
#include <vector>

#include "tests/bench/gpu/bench.hpp"

namespace slacktier {

void write_pairs(Device& device, const std::string& file, OutputFormat output) {
  Bench bench(device, true);
  std::vector<std::byte> values, scales;
  std::vector<Descriptor> descriptors;
  for (std::uint32_t scale = 0; scale < 256; ++scale) {
    for (std::uint32_t value = 0; value < 256; ++value) values.push_back(static_cast<std::byte>(value));
    for (int block = 0; block < 8; ++block) scales.push_back(static_cast<std::byte>(scale));
    descriptors.push_back(Descriptor::hit(scale));
  }
  const std::size_t bytes = std::size_t{65536} * output_bytes(output);
  const auto out = device.allocate_host(bytes);
  GatherArgs args;
  args.cache.value_bytes = 256;
  args.cache.scale_bytes = 8;
  args.cache.values = bench.on_device(values);
  args.cache.scales = bench.on_device(scales);
  args.descriptors = bench.mapped(descriptors);
  args.out = out->device();
  args.output = output;
  args.lookups = 256;
  args.row_values = 256;
  args.row_bytes = 264;
  const auto stream = device.create_stream("pairs");
  stream->launch("tier.gather", args);
  stream->synchronize();
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(out->host()), static_cast<std::streamsize>(bytes));
}

}  // namespace slacktier
