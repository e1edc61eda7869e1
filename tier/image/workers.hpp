// Work on an image by several threads, watched by the caller's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace slacktier {

// Workers when the caller does not say: two for every CPU that this process may use.
int default_workers();

// Runs body(0) ... body(count - 1) on threads and, meanwhile, `look` on the caller's about ten times a second and once at
// the end. When a body or `look` throws, `stop` is called, at once or within a tenth of a second; the bodies should end soon
// then. Returns when all have ended, or throws the first failure.
void run_workers(std::size_t count, const std::string& name, const std::function<void(std::size_t)>& body,
                 const std::function<void()>& look, const std::function<void()>& stop);

}  // namespace slacktier
