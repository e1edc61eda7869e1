// slacktier-probe gates: what each gate costs on the device at hand.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>

#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "platforms/program.hpp"
#include "platforms/provenance.hpp"
#include "probe/cli/commands.hpp"
#include "probe/gates.hpp"
#include "probe/gates_table.hpp"

namespace slacktier {
namespace {

struct GatesArguments {
  GateProbe probe;
  std::string format = "table", out;
  double layer_us = 230;
  bool redact = false;
};

int run(GatesArguments& arguments, const std::vector<std::string>& argv) {
  const TableFormat format = parse_table_format(arguments.format);
  GateProbe& probe = arguments.probe;
  if (probe.samples == 0 || probe.idle_nodes == 0 || probe.idle_steps == 0)
    throw UsageError("--samples, --idle-nodes and --idle-steps: at least 1 is needed");
  if (!(arguments.layer_us >= 0 && arguments.layer_us <= 1e6))
    throw UsageError(fmt::format("--layer-us {}: from 0 to 1000000", arguments.layer_us));
  probe.layer_time = static_cast<Nanos>(arguments.layer_us * 1e3);
  probe.stop = [] { return interrupted(); };
  ProvenanceInput input;
  input.program = "slacktier-probe gates";
  input.argv = argv;
  input.start_unix_s = std::time(nullptr);
  const GateCosts costs = measure_gates(probe);
  input.facts["host"] = host_json(read_host_facts());
  input.facts["device"] = {{"name", costs.device.name}, {"backend", costs.device.backend}, {"detail", costs.device.detail}};
  Envelope envelope = gates_envelope(costs, probe);
  envelope.provenance = provenance(input);
  if (arguments.redact) redact(envelope);
  if (!arguments.out.empty()) write_envelope(arguments.out, envelope);
  if (format == TableFormat::json)
    fmt::print("{}", to_text(envelope));
  else
    fmt::print("{}\n", render(gates_table(envelope), format));
  if (!arguments.out.empty()) fmt::print(stderr, "gates: {}\n", arguments.out);
  return 0;
}

}  // namespace

void add_gates_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& chosen) {
  auto arguments = std::make_shared<GatesArguments>();
  CLI::App* command = app.add_subcommand("gates", "Measure what each way to make a stream wait for the host costs here");
  GatesArguments& a = *arguments;
  command->add_option("--device", a.probe.device, "Compute device: cpu, or cuda:0 where built")->capture_default_str();
  command->add_option("--samples", a.probe.samples, "Samples of each latency; a p99 takes 662")->capture_default_str();
  command->add_option("--idle-nodes", a.probe.idle_nodes, "Layers of the step that idle gates are put into")
      ->capture_default_str();
  command->add_option("--idle-steps", a.probe.idle_steps, "Steps with and without them")->capture_default_str();
  command->add_option("--layer-us", a.layer_us, "Compute of each layer, microseconds")->capture_default_str();
  command->add_option("--out", a.out, "Result file");
  command->add_option("--format", a.format, "table, md, csv or json (the result file)")->capture_default_str();
  command->add_flag("--redact", a.redact, "Hash host names and paths in the result file");
  command->callback([arguments, &argv, &chosen] { chosen = [arguments, &argv] { return run(*arguments, argv); }; });
}

}  // namespace slacktier
