#!/usr/bin/env python3
"""ARCHITECTURE.md, "How to add": a replacement policy and a page source, each one new file and its registration, work at once.

Builds the new file and the registering one against the libraries that are there, and runs them in the place of the originals.
(A table spec and a hash family are added in tests/unit/tier/hash_families.cpp.)
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["SLACKTIER_BUILD"]

POLICY = r"""
// FIFO: the row that has been there longest goes first.
#pragma once

#include <cstdint>
#include <vector>

#include "tier/directory/direct.hpp"

namespace slacktier {

class FifoPolicy {
 public:
  explicit FifoPolicy(std::uint32_t slots) : ring_(slots), step_of_(slots) {}
  static constexpr bool learns_late = false;
  void begin_step() { ++step_; }
  void prefetch(std::uint32_t) {}
  void hit(std::uint32_t slot) { step_of_[slot] = step_; }
  void reserve(std::uint32_t) {}
  void insert(std::uint32_t slot, std::uint32_t) {
    step_of_[slot] = step_;
    ring_[(first_ + count_++) % ring_.size()] = slot;
  }
  std::uint32_t victim(const std::uint32_t*) {
    for (std::uint32_t looks = count_; looks > 0; --looks) {
      const std::uint32_t slot = ring_[first_];
      first_ = static_cast<std::uint32_t>((first_ + 1) % ring_.size());
      --count_;
      if (step_of_[slot] != step_) return slot;
      ring_[(first_ + count_++) % ring_.size()] = slot;
    }
    return no_slot;
  }
  std::size_t bytes() const { return 2 * ring_.size() * sizeof(std::uint32_t); }

 private:
  std::vector<std::uint32_t> ring_, step_of_;
  std::uint32_t first_ = 0, count_ = 0, step_ = 0;
};

}  // namespace slacktier
"""

POLICY_USE = r"""
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tier/directory.hpp"

using namespace slacktier;

static std::uint32_t hits(Directory& directory, const std::vector<std::uint32_t>& rows) {
  std::vector<std::uint32_t> at(rows.size());
  for (std::uint32_t i = 0; i < at.size(); ++i) at[i] = i;
  std::vector<Descriptor> descriptors(rows.size());
  std::vector<Miss> misses;
  std::vector<Reuse> reuses;
  directory.begin_step();
  const auto counts = directory.resolve(rows, at, descriptors, misses, reuses);
  for (const auto& miss : misses) directory.settle(miss, true);
  directory.end_step();
  return counts.hits;
}

int main() {
  const auto fifo = Directory::make("fifo", 100, 3);
  hits(*fifo, {1, 2, 3});
  const std::uint32_t again = hits(*fifo, {1});  // the oldest, used again: first in, first out all the same
  hits(*fifo, {4});
  const bool order = fifo->slot_of(1) == no_slot && fifo->slot_of(2) != no_slot && fifo->slot_of(4) != no_slot;
  std::printf("%u %d\n", again, order ? 1 : 0);
}
"""

SOURCE = r"""
// Page source `ordered`: one thread a disk, a batch's pages in the order of their numbers.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tier/sources/readers.hpp"

namespace slacktier {
namespace {

class OrderedSource final : public PageSource {
 public:
  OrderedSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header), pool_(pool), options_(options), readers_("ordered", disks_, options_, [this](Share& s) { read(s); }) {}
  void submit(ReadBatch& batch) override { readers_.submit(batch); }
  std::string describe() const override { return "pread O_DIRECT, in the order of pages"; }

 private:
  void read(Share& share) {
    ReadBatch& batch = *share.batch;
    std::vector<std::uint32_t> mine;
    for (std::uint32_t i; (i = share.next(disks_)) != UINT32_MAX;) mine.push_back(i);
    std::sort(mine.begin(), mine.end(), [&](auto a, auto b) { return batch.reads[a].page < batch.reads[b].page; });
    for (const std::uint32_t i : mine) {
      note_submission(batch);
      std::byte* page = pool_.page(batch.reads[i].buffer);
      end_read(batch, i, disks_.read(share.disk, *batch.segment, batch.reads[i].page, page), page, disks_, options_);
    }
    finish_share(batch, monotonic_clock().now());
  }

  OpenDisks disks_;
  const PagePool& pool_;
  SourceOptions options_;
  ReaderThreads readers_;
};

}  // namespace

std::unique_ptr<PageSource> make_ordered_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options) {
  return std::make_unique<OrderedSource>(header, pool, options);
}

}  // namespace slacktier
"""

SOURCE_USE = r"""
#include <cstdint>
#include <cstdio>
#include <vector>

#include "platforms/device.hpp"
#include "platforms/executor.hpp"
#include "tier/source.hpp"

using namespace slacktier;

int main(int, char** argv) {
  const ImageHeader image = read_image_header({argv[1]});
  const auto device = open_device("cpu");
  const PagePool pool(*device, image.geometry.page_bytes, 50);
  const auto source = make_source("ordered", image, pool, {});
  std::vector<PageRead> reads;
  for (std::uint32_t i = 0; i < 50; ++i) reads.push_back({(i * 37) % image.segments[0].stored_pages, i});
  std::vector<PageFault> faults(50, PageFault::io);
  std::vector<int> errors(50);
  ReadBatch batch;
  batch.reads = reads;
  batch.faults = faults;
  batch.errors = errors;
  batch.segment = &image.segments[0];
  Doorbell done;
  batch.user = &done;
  batch.done = [](ReadBatch& finished) { static_cast<Doorbell*>(finished.user)->ring(); };
  source->submit(batch);
  done.wait(0);
  int good = 0;
  for (const PageFault fault : faults) good += fault == PageFault::none;
  std::printf("%d %s\n", good, source->describe().c_str());
}
"""


class HowToAdd(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=BUILD)
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
            self.commands = {entry["file"]: entry for entry in json.load(file)}

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def register(self, name, *edits):
        """A copy of the registering file with the lines that ARCHITECTURE.md asks for."""
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = file.read()
        for after, line in edits:
            self.assertEqual(len(re.findall(re.escape(after), text)), 1, f"{name}: '{after}' marks where a line is added")
            text = text.replace(after, after + line)
        return self.put(name, text)

    def compile(self, like, path):
        """As the build compiles `like`, with the new files before the tree's."""
        words = shlex.split(self.commands[os.path.join(ROOT, like)]["command"])
        words = words[next(i for i, word in enumerate(words) if re.search(r"(\+\+|g\+\+-\d+|clang\+\+)$", word)):]
        flags = [w for w in words[1:words.index("-o")] if not w.startswith(("-MD", "-MT", "-MF"))]
        flags = [w for i, w in enumerate(flags) if w not in ("-Winvalid-pch",) and flags[i - 1] not in ("-MT", "-MF") and "cmake_pch" not in w and w != "-include"]
        target = path + ".o"
        done = subprocess.run([words[0], "-I" + self.folder, *flags, "-O0", "-o", target, "-c", path], capture_output=True, text=True,
                              cwd=BUILD, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return words[0], target

    def link_and_run(self, compiler, objects, *arguments):
        program = os.path.join(self.folder, "program")
        libraries = [os.path.join(BUILD, room, f"libslacktier_{room}.a") for room in ("tier", "platforms")]
        names = subprocess.run(["pkg-config", "--libs", "liburing", "libxxhash", "blkid", "libzstd", "libcrypto", "libibverbs", "fmt"], capture_output=True,
                               text=True, check=True).stdout.split()
        names += shlex.split(os.environ.get("SLACKTIER_GPU_LIBRARIES", ""))
        done = subprocess.run([compiler, *objects, *libraries, *names, "-ldl", "-lrt", "-pthread", "-o", program], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        ran = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip()

    def test_a_replacement_policy(self):
        self.put("tier/directory/fifo.hpp", POLICY)
        registering = self.register("tier/directory.cpp", ('#include "tier/directory/clock.hpp"\n', '#include "tier/directory/fifo.hpp"\n'),
                                    ("constexpr PolicyEntry policies[] = {\n", '    {"fifo", make_with<FifoPolicy>},\n'))
        compiler, directory = self.compile("tier/directory.cpp", registering)
        _, use = self.compile("tier/directory.cpp", self.put("use.cpp", POLICY_USE))
        self.assertEqual(self.link_and_run(compiler, [use, directory]), "1 1")

    def test_a_page_source(self):
        added = self.put("tier/sources/ordered.cpp", SOURCE)
        with open(os.path.join(ROOT, "tier/sources/disks.hpp"), encoding="utf-8") as file:
            header = file.read()
        declaration = "std::unique_ptr<PageSource> make_ordered_source(const ImageHeader&, const PagePool&, const SourceOptions&);\n"
        self.put("tier/sources/disks.hpp", header.replace("}  // namespace slacktier", declaration + "}  // namespace slacktier"))
        registering = self.register("tier/source.cpp", ('    {"pread", make_pread_source},\n', '    {"ordered", make_ordered_source},\n'))
        compiler, source = self.compile("tier/source.cpp", registering)
        _, ordered = self.compile("tier/source.cpp", added)
        _, use = self.compile("tier/source.cpp", self.put("use.cpp", SOURCE_USE))
        image = os.path.join(self.folder, "image")
        subprocess.run([os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-tier"), "stage", "--ranks", "4", "--rank", "3", "--size",
                        "16MiB", "--disk", image, "-q"], check=True, capture_output=True, timeout=120)
        self.assertEqual(self.link_and_run(compiler, [use, source, ordered], image), "50 pread O_DIRECT, in the order of pages")


if __name__ == "__main__":
    if shutil.which("pkg-config") is None:
        print("pkg-config is not there")
        raise SystemExit(77)
    unittest.main()
