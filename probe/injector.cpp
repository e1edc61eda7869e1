#include "probe/injector.hpp"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/error.hpp"
#include "probe/injectors/injectors.hpp"

namespace slacktier {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Injector> (*make)(Device& device);
};
constexpr Entry entries[] = {{"host-node", make_host_node_injector}, {"device-clock", make_device_clock_injector}};

}  // namespace

std::vector<std::string> injector_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Injector> make_injector(const std::string& name, Device& device) {
  for (const Entry& entry : entries)
    if (name == entry.name) return entry.make(device);
  throw UsageError(fmt::format("unknown injector '{}'; there are {}", name, fmt::join(injector_names(), ", ")));
}

void InjectingHooks::begin(Stream& main) {
  ++begins_;
  main.timestamp(control_.begin_stamp());
  if (injector_ != nullptr) injector_->begin(main, control_);
}

void InjectingHooks::before_layer(Stream& main, int layer) {
  called_.push_back(layer);
  if (injector_ != nullptr && control_.is_hooked(layer)) injector_->before_layer(main, control_, layer);
  if (stamp_layers_ && layer >= 0 && layer < control_.layers()) main.timestamp(control_.layer_stamp(layer));
}

void InjectingHooks::end(Stream& main) {
  ++ends_;
  if (injector_ != nullptr) injector_->end(main);
  main.timestamp(control_.end_stamp());
}

void InjectingHooks::check_calls() const {
  std::vector<int> wanted(static_cast<std::size_t>(control_.layers()));
  std::iota(wanted.begin(), wanted.end(), 0);
  if (begins_ == 1 && ends_ == 1 && called_ == wanted) return;
  throw CheckFailed(fmt::format(
      "hooks did not enter the graph as they should: the captured step called begin {} times, end {} times and layers [{}]; "
      "once each and layers 0 to {} in order are needed",
      begins_, ends_, fmt::join(called_, ", "), control_.layers() - 1));
}

}  // namespace slacktier
