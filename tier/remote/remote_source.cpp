#include "tier/remote/remote_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr Nanos first_connect = 5'000'000'000, reconnect = 2'000'000'000;
constexpr Nanos ping_interval = 10'000'000'000;
constexpr Nanos first_back_off = 20'000'000, last_back_off = 2'000'000'000;

// The reader whose thread this is. One that ends a batch and is given the next at once looks at its queue anyway: it need
// not be woken, which takes a system call.
thread_local const void* own_reader = nullptr;

bool rings_within(Nanos time, const Doorbell& bell, std::uint32_t seen) {
  if (time == 0) return false;
  for (const Nanos until = monotonic_clock().now() + time; monotonic_clock().now() < until;)
    for (int look = 0; look < 64; ++look)
      if (bell.count() != seen) return true;
  return false;
}

}  // namespace

RemoteSource::RemoteSource(const char* name, const ImageHeader& header, const PagePool& pool, const SourceOptions& options,
                           Nanos linger)
    : pages_(header, options.remote),
      pool_(pool),
      options_(options),
      threads_(static_cast<std::uint32_t>(options.threads)),
      name_(name),
      linger_(linger) {}

void RemoteSource::start() {
  for (std::uint32_t s = 0; s < pages_.servers().size(); ++s)
    for (std::uint32_t t = 0; t < threads_; ++t) {
      readers_.push_back(make_reader());
      readers_.back()->server = s;
      connect(*readers_.back(), first_connect);
      if (t == 0) pages_.learn(s, readers_.back()->connection.image());
    }
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    TaskOptions task;
    if (!options_.cpus.empty()) task.cpu = options_.cpus[i % options_.cpus.size()];
    readers_[i]->task = thread_executor().start(
        fmt::format("{}-{}", name_, i), [this, i] { run(*readers_[i]); }, task);
  }
}

void RemoteSource::stop() {
  stop_.store(true, std::memory_order_release);
  for (const auto& reader : readers_) reader->bell.ring();
  for (const auto& reader : readers_)
    if (reader->task) reader->task->join();
  for (const auto& reader : readers_) disconnect(*reader);
}

void RemoteSource::submit(ReadBatch& batch) {
  const std::uint32_t server = pages_.place(*batch.segment).server;
  const std::uint32_t parts = std::min(threads_, static_cast<std::uint32_t>(batch.reads.size()));
  batch.submitted.store(0, std::memory_order_relaxed);
  batch.remaining.store(parts, std::memory_order_release);
  for (std::uint32_t t = 0; t < parts; ++t) {
    Share share;
    share.batch = &batch;
    share.part = t;
    share.parts = parts;
    Reader& reader = *readers_[server * threads_ + t];
    reader.queue.push(share);
    if (&reader != own_reader) reader.bell.ring();
  }
}

std::string RemoteSource::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void RemoteSource::run(Reader& reader) {
  own_reader = &reader;
  std::uint32_t seen = 0;
  for (;;) {
    Share share;
    while (reader.queue.pop(share)) read(reader, share);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!rings_within(linger_, reader.bell, seen)) keep_alive(reader);
    seen = reader.bell.wait(seen, ping_interval);
  }
}

void RemoteSource::connect(Reader& reader, Nanos timeout) {
  reader.connection = Connection(pages_.servers()[reader.server], pages_.key(), pages_.wanted_image(), timeout);
  try {
    connected(reader);
  } catch (...) {
    disconnect(reader);
    throw;
  }
  reader.back_off = first_back_off;
  reader.heard = monotonic_clock().now();
}

void RemoteSource::disconnect(Reader& reader) {
  disconnected(reader);
  reader.connection.close();
}

// A reader shows now and then that it is there, however busy, and learns that its server has gone.
void RemoteSource::keep_alive(Reader& reader) {
  const Nanos now = monotonic_clock().now();
  if (!reader.connection.open() || now - reader.heard < ping_interval) return;
  try {
    reader.connection.send(protocol::encode(protocol::Type::ping, reader.next_id++, {}), now + silence);
    if (reader.connection.receive(now + silence).type != protocol::Type::pong) return disconnect(reader);
    reader.heard = now;
  } catch (const std::exception&) {
    disconnect(reader);
  }
}

// Reads are repeatable: a connection that breaks is made anew once within a share, what has not come is asked for again.
void RemoteSource::read(Reader& reader, const Share& share) {
  ReadBatch& batch = *share.batch;
  const auto n = static_cast<std::uint64_t>(batch.reads.size());
  reader.ended = static_cast<std::uint32_t>(n * share.part / share.parts);
  reader.end = static_cast<std::uint32_t>(n * (share.part + 1) / share.parts);
  note_submission(batch);
  int error = ENOTCONN;
  for (int attempt = 0; attempt < 2 && reader.ended < reader.end; ++attempt) {
    try {
      if (!reader.connection.open()) {
        if (monotonic_clock().now() < reader.next_try) break;
        connect(reader, reconnect);
      }
      exchange(reader, batch);
    } catch (const std::exception& failed) {
      error = note_failure(reader, failed);
      if (!reader.connection.open()) break;  // connecting failed
      disconnect(reader);
      if (error == EACCES || error == EPROTO) break;  // the server's word, which asking again does not change
    }
  }
  while (reader.ended < reader.end) end_one(reader, batch, -error);
  finish_share(batch, monotonic_clock().now());
}

int RemoteSource::note_failure(Reader& reader, const std::exception& failed) {
  if (!reader.connection.open()) {
    reader.next_try = monotonic_clock().now() + reader.back_off;
    reader.back_off = std::min(2 * std::max(reader.back_off, first_back_off), last_back_off);
  }
  const std::lock_guard lock(failure_mutex_);
  failure_ = failed.what();
  const auto* system = dynamic_cast<const std::system_error*>(&failed);
  return system ? system->code().value() : EPROTO;
}

}  // namespace slacktier
