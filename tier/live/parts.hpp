// What a live tier is made of, for its files only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tier/chunk.hpp"
#include "tier/tier.hpp"

namespace slacktier {

// Records that go into a cache at once outside steps; a multiple of 8, so that the slots behind them are aligned.
inline constexpr std::uint32_t filling_batch = 2048;

// One batch of reads in flight. Outlives the step when the watchdog gave it up.
struct Tier::Batch {
  ReadBatch read;
  std::vector<PageFault> faults;
  std::vector<int> errors;
  Tier* tier = nullptr;
  Layer* layer = nullptr;
  std::atomic<bool> busy{false};
  // Of prefill's waves; under the layer's lock.
  enum class Wave : std::uint32_t { none, in_flight, arrived, given_up };
  Wave wave = Wave::none;
  std::vector<PageRead> wave_reads;
};

struct Tier::Layer {
  enum class Phase : std::uint32_t { settled, planned, reading, arrived };

  Tier* tier = nullptr;
  std::size_t index = 0;
  LayerSetup setup;
  Shard shard;
  std::unique_ptr<RowOrigin> origin;
  std::unique_ptr<Buffer> descriptors, cache_memory, out;
  CacheArrays cache;
  std::unique_ptr<LayerCore> core;
  const std::uint64_t* seen = nullptr;    // rows that are read, of layers that skip others
  OpenSource* source = nullptr;           // of layers that read pages
  const ImageSegment* segment = nullptr;  // of that source's image
  Signal* signal = nullptr;
  std::int64_t* gate_before = nullptr;
  std::int64_t* gate_after = nullptr;
  std::vector<std::unique_ptr<Batch>> batches;
  Batch* current = nullptr;

  // The core's transitions (tier/live/transitions.cpp), recorded where there is a log. Called under `transitions`, between
  // steps too: a source's thread may still end the quarantine of a step that was given up.
  void plan(std::uint64_t epoch, std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active);
  LayerCore::Release pages_in(std::uint64_t epoch, std::span<const PageFault> faults);
  bool give_up(std::uint64_t epoch);
  void settle();
  void advance(std::span<const std::uint32_t> rows, std::vector<std::uint32_t>& filled);
  void hold(std::span<const std::uint32_t> local_rows, std::vector<std::uint32_t>& filled);
  void resize_cache(std::uint64_t rows);
  void set_dedup(bool rows, bool pages);
  CoreLog* log = nullptr;

  // Guards the core's transitions between the worker (plan, give up, settle) and a source's thread (pages in).
  std::mutex transitions;
  std::atomic<Phase> phase{Phase::settled};
  std::atomic<std::uint64_t> asked_epoch{0};  // on demand: the main stream has come to the layer in this step
  Nanos deadline = 0, resolve_begin = 0, resolve_end = 0, submitted = 0, arrived = 0;
  StepStatus status = StepStatus::ok;
  std::string fault;
  std::vector<std::uint64_t> advanced;  // bitmap of slots whose cache bytes are still to be written
  std::vector<std::uint32_t> hot_rows;  // of policy "static": local rows, hottest first
};

// What prefill needs: one chunk's tokens, indices, lists and rows, of one layer after another.
struct Tier::Chunk {
  Chunk(Device& device, const TableSpec& spec, std::uint32_t max_tokens, OutputFormat output);
  std::size_t host_bytes() const;

  std::unique_ptr<Buffer> tokens, rows_device, rows_host, descriptors, at, out;
  ChunkPlan plan;
  PrefillReport report;
};

// One image and the threads that read it. Layers with the same source, disks and threads share it: only then are layer 1's
// pages in front of layer 14's in the same queue.
struct Tier::OpenSource {
  LayerSetup setup;
  ImageHeader image;
  std::unique_ptr<PageSource> pages;
};

}  // namespace slacktier
