// What wrappers around page sources are made of: their settings as text, and how they stand between a batch and its owner.
// Private to tier.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tier/source.hpp"

namespace slacktier {

// "delayed:latency_us=15,gb_per_s=12.5" taken apart. Each getter takes the setting of its name, if it is there; finish()
// refuses those that nobody took. All throw UsageError naming wrapper, setting, value and what it may be.
class WrapperSettings {
 public:
  explicit WrapperSettings(const std::string& text);
  const std::string& name() const { return name_; }
  std::optional<double> number(const char* key, double least, double most);
  std::optional<std::uint64_t> count(const char* key, std::uint64_t least, std::uint64_t most);
  std::optional<std::string> word(const char* key);
  void finish() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  struct Setting {
    std::string key, value;
    bool taken = false;
  };
  std::string text_, name_;
  std::vector<Setting> settings_;
  std::vector<std::string> known_;
};

// Makes another instance of what a wrapper wraps.
using SourceFactory = std::function<std::unique_ptr<PageSource>(const PagePool& pool, const SourceOptions& options)>;

// What a wrapper is made from.
struct Wrapping {
  const SourceFactory& inner;
  const ImageHeader& header;
  const PagePool& pool;
  const SourceOptions& options;
};

// `wrapping` null: only the settings are read and checked.
std::unique_ptr<PageSource> make_delayed_source(WrapperSettings& settings, const Wrapping* wrapping);
std::unique_ptr<PageSource> make_shared_source(WrapperSettings& settings, const Wrapping* wrapping);
std::unique_ptr<PageSource> make_faulty_source(WrapperSettings& settings, const Wrapping* wrapping);

// A batch whose completion comes to the wrapper instead of its owner, from take_over to give_back.
struct HeldBatch {
  ReadBatch* batch = nullptr;
  void (*done)(ReadBatch&) = nullptr;
  void* user = nullptr;

  void take_over(ReadBatch& held, void (*instead)(ReadBatch&), void* with) {
    batch = &held;
    done = std::exchange(held.done, instead);
    user = std::exchange(held.user, with);
  }
  // The batch as its owner knows it: call its `done` next, and touch it no more.
  ReadBatch& give_back() {
    batch->done = done;
    batch->user = user;
    return *std::exchange(batch, nullptr);
  }
};

// Records that are used again and again, so that steady traffic allocates nothing. Thread-safe.
template <class Record>
class RecordPool {
 public:
  Record& take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      all_.push_back(std::make_unique<Record>());
      free_.reserve(all_.size());
      return *all_.back();
    }
    Record& record = *free_.back();
    free_.pop_back();
    return record;
  }
  void put_back(Record& record) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&record);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Record>> all_;
  std::vector<Record*> free_;
};

}  // namespace slacktier
