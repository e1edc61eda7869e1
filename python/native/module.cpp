// The native part of the Python package: the probe itself, and an attachment for models that run in this process.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "probe/attachment.hpp"
#include "probe/program.hpp"

namespace {

namespace py = pybind11;
using namespace slacktier;

// Streams come as native handles; 0 is the calling thread.
class Engine {
 public:
  Engine(const std::string& directory, int rank, int layers, const std::string& device)
      : attachment_(directory, rank, layers), device_(device == "cpu" ? nullptr : open_device(device)) {}

  void begin(std::uintptr_t stream, int batch, bool decode) {
    if (stream == 0)
      attachment_.begin(batch, decode);
    else
      attachment_.queue_begin(*device_, adopted(stream), batch, decode);
  }
  void layer(std::uintptr_t stream, int layer) {
    if (stream == 0)
      attachment_.before_layer(layer);
    else
      attachment_.queue_layer(adopted(stream), layer);
  }
  void end(std::uintptr_t stream) {
    if (stream == 0)
      attachment_.end();
    else
      attachment_.queue_end(adopted(stream));
  }
  int queued() const { return attachment_.queued(); }

 private:
  Stream& adopted(std::uintptr_t native) {
    if (!device_) throw std::invalid_argument("an attachment on cpu has no streams");
    auto& stream = streams_[native];
    if (!stream) stream = device_->adopt_stream(native, "engine");
    return *stream;
  }

  Attachment attachment_;
  std::unique_ptr<Device> device_;
  std::map<std::uintptr_t, std::unique_ptr<Stream>> streams_;
};

int probe(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  return probe_program(argc, argv.data());
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  using Free = py::call_guard<py::gil_scoped_release>;  // hooks wait, and must not stop the engine's other threads
  py::class_<Engine>(module, "Attachment")
      .def(py::init<const std::string&, int, int, const std::string&>(), py::arg("directory"), py::arg("rank"),
           py::arg("layers"), py::arg("device"))
      .def("begin", &Engine::begin, Free())
      .def("layer", &Engine::layer, Free())
      .def("end", &Engine::end, Free())
      .def("queued", &Engine::queued);
  module.def("probe", &probe, Free(), "slacktier-probe with these words; returns its exit status");
}
