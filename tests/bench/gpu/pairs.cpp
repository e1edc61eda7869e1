#include <cstddef>
#include <fstream>

#include "tests/bench/gpu/bench.hpp"

namespace slacktier {

void write_pairs(Device& device, const std::string& file, OutputFormat output) {
  Bench bench(device, true);
  const std::size_t bytes = std::size_t{65536} * output_bytes(output);
  const auto out = device.allocate_host(bytes);
  GatherArgs args = testing::every_pair(bench, output);
  args.out = out->device();
  const auto stream = device.create_stream("pairs");
  stream->launch("tier.gather", args);
  stream->synchronize();
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(out->host()), static_cast<std::streamsize>(bytes));
}

}  // namespace slacktier
