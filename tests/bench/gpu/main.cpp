// The tier's device side on a GPU, against kernels that only move the same bytes, and what a step pays for the tier.
//
//   bench_gpu [--device cuda:0] [--gate G] [--quick] [--contention] [--peer cuda:1] [--step FOLDER] [--pairs FILE [--output
//   fp32]]
//
// Load: B = 128 tokens of DeepSeek-V4.1, all 3,072 rows of a layer from one place. Each figure is the median over replays of
// a graph of launches, each with its own random rows, from a device timestamp before the first to one after the last.
// --contention times the gather beside work that occupies all multiprocessors, on another stream.
// --step stages a small image in FOLDER and compares graphs of 40 layers, 29.4 ms, with and without a tier that has all rows
// in its cache. --pairs writes the 65,536 results (scale by scale) for comparison with other libraries.
// Exit status: 0 measured, 1 wrong rows or a failure, 77 no GPU.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "platforms/error.hpp"
#include "tests/bench/gpu/bench.hpp"

namespace {

using namespace slacktier;

struct Options {
  std::string device = "cuda:0", gate = "auto", step, pairs, peer, output = "bf16";
  bool quick = false, contention = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (++i >= argc) throw UsageError(word + " needs a value");
      return std::string(argv[i]);
    };
    if (word == "--device")
      options.device = value();
    else if (word == "--gate")
      options.gate = value();
    else if (word == "--step")
      options.step = value();
    else if (word == "--pairs")
      options.pairs = value();
    else if (word == "--output")
      options.output = value();
    else if (word == "--peer")
      options.peer = value();
    else if (word == "--contention")
      options.contention = true;
    else if (word == "--quick")
      options.quick = true;
    else
      throw UsageError("unknown option " + word);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    DeviceOptions device_options;
    device_options.gate = options.gate;
    if (options.contention) {
      for (const char* work : {"gemm", "stream"}) {
        device_options.work = work;
        bench_contention(*open_device(options.device, device_options), options.quick);
      }
      return 0;
    }
    const auto device = open_device(options.device, device_options);
    const DeviceFacts facts = device->facts();
    fmt::print("{}: {}; gate {}\n", facts.name, facts.detail, facts.gate);
    if (!options.pairs.empty())
      write_pairs(*device, options.pairs, parse_output(options.output, "--output"));
    else if (!options.step.empty())
      bench_step(*device, options.step, options.quick);
    else
      bench_gathers(*device, options.quick, options.peer);
    return 0;
  } catch (const EnvironmentError& error) {
    fmt::print("SKIPPED: {}\n", error.what());
    return 77;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_gpu: error: {}\n", error.what());
    return 1;
  }
}
