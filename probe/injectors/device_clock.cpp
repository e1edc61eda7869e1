#include "probe/injectors/injectors.hpp"

namespace slacktier {
namespace {

class DeviceClockInjector final : public Injector {
 public:
  void begin(Stream&, ControlBlock&) override {}
  void before_layer(Stream& main, ControlBlock& control, int layer) override {
    main.wait_until(control.begin_stamp(), control.delay(layer));
  }
  void end(Stream&) override {}
  std::size_t operations(std::size_t hooks) const override { return hooks; }
  std::size_t host_functions(std::size_t) const override { return 0; }
};

}  // namespace

std::unique_ptr<Injector> make_device_clock_injector(Device&) { return std::make_unique<DeviceClockInjector>(); }

}  // namespace slacktier
