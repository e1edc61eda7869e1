// The three ways in which a stream waits for a signal's word, and how the word is closed again.
#pragma once

#include "platforms/gpu/runtime.hpp"
#include "platforms/gpu/state.hpp"

namespace slacktier::gpu {

// Whether the device at hand can wait on memory words in streams, in and outside captures.
bool wait_value_supported(int device);

// Queues the gate: `word` is the device's address of signal.word.
rt::Error enqueue_gate(Gate gate, rt::Stream stream, Signal& signal, std::uint32_t* word);

// Opens a gate by force, without an epoch: for work that nobody will publish for any more.
void force_open(Signal& signal) noexcept;

}  // namespace slacktier::gpu
