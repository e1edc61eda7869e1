// slacktier-harness run: placements against the DRAM baseline on a live tier.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/cli/run_arguments.hpp"
#include "harness/cli/run_simulated.hpp"
#include "harness/run.hpp"
#include "harness/sim.hpp"
#include "platforms/error.hpp"
#include "platforms/gpu_monitor.hpp"
#include "platforms/host.hpp"
#include "platforms/profile.hpp"
#include "platforms/program.hpp"
#include "platforms/provenance.hpp"
#include "reports/json.hpp"
#include "reports/results_table.hpp"
#include "reports/table.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace {

namespace fs = std::filesystem;

Campaign campaign_of(const RunArguments& arguments) {
  Campaign campaign = load_campaign(arguments.campaign);
  apply_traces(campaign, arguments.traces);
  if (!arguments.workloads.empty()) {
    std::vector<Workload> kept;
    for (const auto& workload : campaign.workloads)
      if (("," + arguments.workloads + ",").find("," + workload.name + ",") != std::string::npos) kept.push_back(workload);
    if (kept.empty()) throw UsageError(fmt::format("--workloads {}: the campaign has none of these", arguments.workloads));
    campaign.workloads = kept;
  }
  apply_number(arguments.rank, "--rank", campaign.rank);
  apply_number(arguments.sessions, "--sessions", campaign.sessions);
  apply_number(arguments.q, "--tokens-per-session", campaign.tokens_per_session);
  apply_number(arguments.blocks, "--blocks", campaign.blocks);
  apply_number(arguments.block_steps, "--block-steps", campaign.block_steps);
  apply_number(arguments.warm_steps, "--warm-steps", campaign.warm_steps);
  apply_number(arguments.seed, "--seed", campaign.seed);
  if (!arguments.prefill.empty()) campaign.prefill_reads = parse_prefill(arguments.prefill, "--prefill");
  if (!arguments.output.empty()) campaign.output = parse_output(arguments.output, "--output");
  apply_number(arguments.prefill_chunk, "--prefill-chunk", campaign.prefill_chunk);
  if (arguments.size > 0) campaign.image_bytes = arguments.size;
  if (arguments.top_up) campaign.top_up = true;
  if (arguments.no_check) campaign.check = false;
  if (arguments.no_graph) campaign.graph = false;
  if (!arguments.placement.empty()) {
    const Envelope file = read_envelope(arguments.placement, "placement");
    const Placement placement =
        placement_from_json(file.results, load_table_spec(campaign.table), arguments.placement + ": results");
    campaign.placements.resize(1);
    campaign.placements.push_back(placement);
  }
  // A campaign that names servers itself keeps its disks unless told otherwise.
  const bool names_servers = std::any_of(campaign.placements.begin(), campaign.placements.end(), [](const Placement& p) {
    return std::any_of(p.layers.begin(), p.layers.end(), [](const auto& l) { return is_remote_source(l.second.source); });
  });
  const bool as_it_is = !arguments.source.empty() || arguments.remote.connect.empty() || names_servers;
  const std::string source = as_it_is ? arguments.source : "tcp";
  if (!source.empty() && !is_remote_source(source))
    throw UsageError(fmt::format("--source {}: reads from no server; placements say which disks they read", source));
  RemoteOptions remote = arguments.remote;
  if (!arguments.granularity.empty()) remote.granularity = parse_granularity(arguments.granularity);
  for (Placement& placement : campaign.placements) read_from_servers(placement, source, remote);
  validate(campaign);
  return campaign;
}

// The device, with the gate that a gates file found best on its like.
std::unique_ptr<Device> open_with_gates(const RunArguments& arguments) {
  DeviceOptions options{arguments.gate, arguments.work, {}, {}};
  std::string measured_on;
  if (!arguments.gates.empty()) {
    const Envelope file = read_envelope(arguments.gates, "gates");
    options.measured_gate = file.results.at("default_gate").get<std::string>();
    options.measured_from = arguments.gates;
    if (const auto device = file.provenance.find("device"); device != file.provenance.end() && device->is_object())
      measured_on = device->value("name", "");
  }
  auto device = open_device(arguments.device, options);
  if (!measured_on.empty() && measured_on != device->facts().name)
    throw UsageError(
        fmt::format("{}: provenance.device.name: was measured on {}, {} is {}: measure with slacktier-probe "
                    "gates --device {}",
                    arguments.gates, measured_on, arguments.device, device->facts().name, arguments.device));
  return device;
}

int run(const RunArguments& arguments, const Invocation& invocation) {
  if (arguments.list) {
    for (const auto& campaign : built_in_campaigns()) fmt::print("{:<12} {}\n", campaign.name, campaign.summary);
    fmt::print("{:<12} {}\n", "paper",
               "With --device sim: the paper's whole evaluation on a virtual clock, value beside value");
    return 0;
  }
  parse_table_format(arguments.format);
  if (arguments.campaign == "paper") return run_paper_evaluation(arguments, invocation);
  Campaign campaign = campaign_of(arguments);
  RunOptions options;
  options.token_map = arguments.token_map;
  options.control = arguments.control;
  options.controller = arguments.controller;
  if (arguments.controller && arguments.control.empty())
    options.control = (fs::path(arguments.scratch) / "controller.json").string();
  options.quiet = arguments.quiet;
  options.stop = [] { return interrupted(); };
  std::vector<int> layers;
  for (const auto& layer : load_table_spec(campaign.table).layers) layers.push_back(layer.layer);
  const bool assumed = arguments.model_layers > 0 || arguments.step_ms > 0;
  if (assumed && !arguments.windows.empty())
    throw UsageError("--windows brings its own layers and times: leave out --model-layers and --step-ms");
  options.model = assumed ? uniform_model(arguments.model_layers, static_cast<Nanos>(arguments.step_ms * 1e6))
                  : arguments.windows.empty() ? paper_v41_model()
                                              : model_from_windows(read_envelope(arguments.windows, "windows"), layers,
                                                                   campaign.sessions * campaign.tokens_per_session);
  if (!arguments.rows.empty()) {
    options.images.rows = checkpoint_table(load_table_spec(campaign.table), arguments.rows);
    options.verify_sample = 200;
  }
  apply_number(arguments.verify_sample, "--verify-sample", options.verify_sample);
  options.images.disks = arguments.disks;
  options.images.quiet = arguments.quiet;
  if (options.images.disks.empty()) options.images.disks = {arguments.scratch};
  if (arguments.device != "sim" && !arguments.reads.empty())
    throw UsageError("--reads: read times are for --device sim; a live device has its own");
  if (arguments.dry_run) {
    for (const auto& line : arguments.device == "sim" ? plan_simulated(campaign) : plan_campaign(campaign, options))
      fmt::print("{}\n", line);
    return 0;
  }
  if (arguments.disks.empty() || arguments.controller) fs::create_directories(arguments.scratch);
  const fs::path out = arguments.out.empty()
                           ? fs::path(arguments.scratch) / (fs::path(campaign.name).stem().string() + ".results.json")
                           : fs::path(arguments.out);
  options.samples_dir = (out.parent_path() / (out.stem().string() + "-samples")).string();

  if (arguments.device == "sim")
    return run_simulated(arguments, invocation, campaign, options.model, out.string(), options.samples_dir);

  ProvenanceInput provenance_input;
  provenance_input.program = "slacktier-harness run";
  provenance_input.argv = invocation.argv;
  provenance_input.seed = campaign.seed;
  provenance_input.start_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  if (arguments.memory_limit > 0) limit_own_memory(arguments.memory_limit, "slacktier-harness run");
  const std::unique_ptr<Device> device = open_with_gates(arguments);
  const DeviceFacts facts = device->facts();
  const OpenedMonitor monitor = open_gpu_monitor(facts);
  const GpuReading before = monitor.monitor ? monitor.monitor->read() : GpuReading();
  RunOutcome outcome = run_campaign(*device, campaign, options);
  const GpuReading after = monitor.monitor ? monitor.monitor->read() : GpuReading();
  for (const GpuWarning& warning : gpu_warnings(platform_profile(facts), before, after))
    outcome.envelope.warnings.push_back({warning.code, warning.message, "/provenance/device"});
  if (!outcome.disks.empty()) provenance_input.facts["disks"] = outcome.disks;
  provenance_input.facts["host"] = host_json(read_host_facts());
  provenance_input.facts["device"] = device_json(facts, monitor, before, after);
  outcome.envelope.provenance = provenance(provenance_input);
  if (arguments.redact) redact(outcome.envelope);
  write_envelope(out, outcome.envelope);

  print_tables(arguments, outcome.envelope, campaign.prefill_reads);
  std::fflush(stdout);
  fmt::print(stderr, "results: {}\n", out.string());
  if (outcome.interrupted) throw Interrupted();
  if (!outcome.failure.empty()) throw DeviceError(outcome.failure + "; what had run is saved in " + out.string());
  if (outcome.mismatches > 0) {
    fmt::print(stderr, "slacktier-harness: {} mismatches between gathered rows and their origin\n", outcome.mismatches);
    return 1;
  }
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, const Invocation& invocation, std::function<int()>& chosen) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command =
      app.add_subcommand("run", "Run placements against the DRAM baseline on a live tier and print what each costs");
  RunArguments& a = *arguments;
  command->add_option("campaign", a.campaign, "Campaign: a name (--list shows them) or a JSON file")->capture_default_str();
  command->add_flag("--list", a.list, "List the built-in campaigns");
  command->add_option("--placement", a.placement, "Placement file to run instead of the campaign's placements");
  command->add_option("--control", a.control,
                      "File that the placement beside the baseline follows while it runs: replace it as a whole to change "
                      "cache rows, sources, order or dedup between two steps");
  command->add_flag("--controller", a.controller,
                    "Move cache rows between that placement's two layers while it runs, by hill climbing on what its steps "
                    "wait; live through the control file (--control or SCRATCH/controller.json), or with --device sim");
  command->add_option("--windows", a.windows,
                      "Windows file with the layers' times; default: the paper's DeepSeek-V4.1 on 4 x H200");
  command->add_option("--model-layers", a.model_layers, "Assume a model of this many equal layers (with --step-ms)");
  command->add_option("--step-ms", a.step_ms, "Assume that a step of that model takes so long");
  command->add_option("--trace", a.traces, "Token sessions, NAME=FILE or FILE (JSONL, plain, gzip or zstd); repeatable");
  command->add_option("--token-map", a.token_map,
                      "Token map of the table (little-endian int32 per raw id); needed with --trace of raw ids");
  command->add_option("--rows", a.rows, "Safetensors checkpoint with the table's rows (folder or file); default: generated");
  command->add_option("--verify-sample", a.verify_sample,
                      "Pages of each image compared with their rows first; default 200 with --rows, else 0");
  command->add_flag("--top-up", a.top_up, "Add generated sessions when a trace has too few (labelled in the results)");
  command->add_option("--workloads", a.workloads, "Run only these workloads, comma-separated");
  command
      ->add_option("--device", a.device,
                   "cpu, or cuda:0 where built; sim: a virtual clock, times modelled and no bytes moved")
      ->capture_default_str();
  command->add_option("--gate", a.gate, "How a GPU's stream awaits reads: auto, host-node, wait-value or spin")
      ->capture_default_str();
  command->add_option("--gates", a.gates,
                      "Gates file of slacktier-probe gates: what gate auto is; default: by the kind of GPU");
  command->add_option("--report", a.report, "Of campaign paper: folder for its tables (Markdown) and figures (SVG)");
  command->add_option("--reads", a.reads,
                      "With --device sim: read times of slacktier-iobench sweep; default: the paper's disks and host work");
  command
      ->add_option("--work", a.work,
                   "What a layer's time is on a GPU: spin (one block), gemm (all multiprocessors) or stream")
      ->capture_default_str();
  command->add_option("--disk", a.disks, "Folder for image files, or a staged image (file or block device); one per disk");
  command
      ->add_option("--connect", a.remote.connect,
                   "Servers (slacktier-tier serve) that hold the tables: what placements read from disks is read from them")
      ->type_name("HOST:PORT,…");
  command->add_option("--source", a.source, "How servers are read; default: tcp");
  command->add_option("--key-file", a.remote.key_file, "Key of the servers")->type_name("FILE");
  command->add_option("--rdma-device", a.remote.device, "RDMA device of source rdma, or one for each server: mlx5_0,mlx5_1")
      ->capture_default_str();
  command->add_option("--gid-index", a.remote.gid_index, "GID of that device; default: the best by score")
      ->check(CLI::Range(0, 1023));
  command->add_option("--queue-pairs", a.remote.queue_pairs, "Queue pairs for each thread of source rdma")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--granularity", a.granularity, "What a missing row brings from a server: page or record");
  command->add_option("--scratch", a.scratch, "Folder for images and results when --disk or --out are not given")
      ->capture_default_str();
  command->add_option("--size", a.size, "Image size of all layers together, e.g. 2GiB; default: the campaign's")
      ->transform(CLI::AsSizeValue(false));
  command
      ->add_option("--memory-limit", a.memory_limit,
                   "Cap the memory of this process's control group, page cache included, e.g. 8GiB (memory.high)")
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--rank", a.rank, "Rank whose share of the tables is served");
  command->add_option("--sessions", a.sessions, "Concurrent sessions B");
  command->add_option("--tokens-per-session", a.q, "Tokens per session and step q");
  command->add_option("--prefill", a.prefill,
                      "directory: prefill passes the directories without reads (default); read: it reads its pages, in "
                      "chunks between the steps and timed apart");
  command->add_option("--prefill-chunk", a.prefill_chunk, "Tokens of the largest prefill chunk (default 8192)");
  command->add_option("--output", a.output, "Numbers in which rows are delivered: bf16 (default) or fp32");
  command->add_option("--blocks", a.blocks, "Interleaved blocks");
  command->add_option("--block-steps", a.block_steps, "Measured steps of each placement in a block");
  command->add_option("--warm-steps", a.warm_steps, "Steps through the directories before the measurement");
  command->add_option("--seed", a.seed, "Seed of rows, generated sessions and block order");
  command->add_flag("--no-graph", a.no_graph,
                    "Queue the operations of every step one by one instead of replaying a captured graph");
  command->add_flag("--no-check", a.no_check, "Do not compare every gathered row with its origin");
  command->add_option("--out", a.out, "Result file; raw samples go beside it");
  command->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  command->add_flag("--redact", a.redact, "Hash host names, serials and paths in the result file");
  command->add_flag("--dry-run", a.dry_run, "Only say what would be staged and run: bytes and seconds");
  command->add_flag("-q,--quiet", a.quiet, "No progress");
  command->add_flag("-v,--verbose", a.verbose, "Per-layer table in every format");
  command->callback(
      [arguments, &invocation, &chosen] { chosen = [arguments, &invocation] { return run(*arguments, invocation); }; });
}

}  // namespace slacktier
