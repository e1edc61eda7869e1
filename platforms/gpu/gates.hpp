// The three ways in which a stream waits for a signal's word, and the stores by which it answers.
#pragma once

#include "platforms/gpu/runtime.hpp"
#include "platforms/gpu/state.hpp"

namespace slacktier::gpu {

// Whether the device at hand can wait on and store memory words in streams, in and outside captures.
bool wait_value_supported(int device);

// Queues the gate: `word` is the device's address of signal.word.
rt::Error enqueue_gate(Gate gate, rt::Stream stream, Signal& signal, std::uint32_t* word);

// Queues a store that the host sees after all that the stream did before: by the memory operations where gates are such,
// else by a kernel.
rt::Error enqueue_store(Gate gate, rt::Stream stream, std::uint32_t* word, std::uint32_t value);

// Opens a gate by force, without an epoch: for work that nobody will publish for any more.
void force_open(Signal& signal) noexcept;

}  // namespace slacktier::gpu
