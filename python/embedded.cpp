#include "python/embedded.hpp"

#include <pybind11/embed.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include "platforms/error.hpp"
#include "python/environment.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace slacktier {
namespace {

namespace py = pybind11;

// The interpreter is never ended, so what it and its modules hold at the end is no leak of ours.
class KeptMemory {
#if defined(__SANITIZE_ADDRESS__)
 public:
  KeptMemory() { __lsan_disable(); }
  ~KeptMemory() { __lsan_enable(); }
#else
 public:
  KeptMemory() {}
#endif
};

std::optional<std::filesystem::path> active_environment() {
  const char* root = std::getenv("VIRTUAL_ENV");
  if (root == nullptr || *root == 0) return {};
  return root;
}

void check(const PyStatus& status) {
  if (PyStatus_Exception(status) != 0)
    throw EnvironmentError(std::string("Python ") + embedded_python_version() +
                           " does not start: " + (status.err_msg == nullptr ? "no reason given" : status.err_msg) +
                           ". Is python3 installed below " SLACKTIER_PYTHON_HOME "?");
}

// The packages that VIRTUAL_ENV's own interpreter would see, before those of the system.
void use_environment(const VirtualEnvironment& environment) {
  const py::module_ sys = py::module_::import("sys");
  const py::list before = sys.attr("path");
  py::list kept;
  for (const py::handle entry : before) {
    const std::string folder = py::str(entry);
    const bool packages = folder.ends_with("site-packages") || folder.ends_with("dist-packages");
    if (!packages || environment.system_packages) kept.append(entry);
  }
  sys.attr("path") = py::list();
  py::module_::import("site").attr("addsitedir")(environment.site_packages.string());
  py::list path = sys.attr("path");
  for (const py::handle entry : kept) path.append(entry);
  for (const char* name : {"prefix", "exec_prefix"}) sys.attr(name) = environment.root.string();
  sys.attr("executable") = (environment.root / "bin" / "python").string();  // what libraries start workers with
}

// Owns whatever of the interpreter is ours: it is started here or was there before.
class Interpreter {
 public:
  // Throws EnvironmentError; the next call tries again.
  static void start() {
    static std::mutex mutex;
    static bool started = false;
    const std::lock_guard lock(mutex);
    if (started || Py_IsInitialized() != 0) return;
    std::optional<VirtualEnvironment> environment;
    if (const auto root = active_environment()) environment = read_virtual_environment(*root, embedded_python_version());
    const auto own = own_modules(std::filesystem::read_symlink("/proc/self/exe").parent_path(), SLACKTIER_PYTHON_SOURCES);
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    config.write_bytecode = 0;
    config.parse_argv = 0;
    // Otherwise the first python3 on the PATH says where the standard library is, and that may be another build's.
    PyStatus status = PyConfig_SetBytesString(&config, &config.home, SLACKTIER_PYTHON_HOME);
    if (PyStatus_Exception(status) == 0) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    check(status);
    started = true;
    {
      const py::module_ sys = py::module_::import("sys");
      if (environment) use_environment(*environment);
      sys.attr("path").attr("insert")(0, own.string());
      // Results alone go to stdout; what libraries print is none.
      sys.attr("stdout") = sys.attr("stderr");
    }
    PyEval_SaveThread();
  }
};

// While Python runs on its main thread, SIGINT is a KeyboardInterrupt in it; afterwards whoever had the signal has it again.
class InterruptByPython {
 public:
  InterruptByPython() {
    const py::module_ threading = py::module_::import("threading");
    mine_ = threading.attr("current_thread")().is(threading.attr("main_thread")());
    if (!mine_) return;
    ::sigaction(SIGINT, nullptr, &before_);
    const py::module_ signal = py::module_::import("signal");
    signal.attr("signal")(signal.attr("SIGINT"), signal.attr("default_int_handler"));
  }
  ~InterruptByPython() {
    if (mine_) ::sigaction(SIGINT, &before_, nullptr);
  }
  InterruptByPython(const InterruptByPython&) = delete;
  InterruptByPython& operator=(const InterruptByPython&) = delete;

 private:
  bool mine_ = false;
  struct sigaction before_ {};
};

std::string text_of(const py::object& value) { return py::str(value); }

// "plots.py:12" of the innermost frame.
std::string last_frame(const py::error_already_set& error) {
  if (!error.trace()) return "";
  const py::list frames = py::module_::import("traceback").attr("extract_tb")(error.trace());
  if (frames.empty()) return "";
  const py::object frame = frames[frames.size() - 1];
  return " (" + std::filesystem::path(text_of(frame.attr("filename"))).filename().string() + ":" +
         text_of(frame.attr("lineno")) + ")";
}

[[noreturn]] void translate(const py::error_already_set& error, const std::string& called) {
  const std::string type = text_of(error.type().attr("__name__"));
  const std::string text = text_of(error.value());
  if (error.matches(PyExc_KeyboardInterrupt)) throw Interrupted();
  if (error.matches(PyExc_ModuleNotFoundError)) {
    const std::string name = text_of(error.value().attr("name"));
    const std::string package = name.substr(0, name.find('.'));
    if (package == "slacktier") throw EnvironmentError(called + ": there is no module " + name + " in what is installed");
    throw EnvironmentError("the Python package " + package + ", which " + called +
                           " needs, is missing: " + pip_command(active_environment(), package));
  }
  if (error.matches(PyExc_ImportError)) throw EnvironmentError(called + ": " + text + last_frame(error));
  if (py::hasattr(error.type(), "__module__") && text_of(error.type().attr("__module__")) == "slacktier.errors") {
    if (type == "UsageError") throw UsageError(text);
    if (type == "CheckFailed") throw CheckFailed(text);
    if (type == "EnvironmentLacks") throw EnvironmentError(text);
    if (type == "DeviceFailed") throw DeviceError(text);
  }
  if (error.matches(PyExc_OSError)) {
    const py::object number = error.value().attr("errno");
    if (!number.is_none()) {
      const py::object file = error.value().attr("filename");
      throw std::system_error(number.cast<int>(), std::generic_category(),
                              called + (file.is_none() ? "" : ": " + text_of(file)));
    }
  }
  throw PythonError(called + ": " + type + ": " + text + last_frame(error));
}

}  // namespace

Json call_python(const std::string& module, const std::string& function, const Json& arguments) {
  const KeptMemory kept;
  Interpreter::start();
  const py::gil_scoped_acquire lock;
  const std::string called = module + "." + function;
  try {
    const InterruptByPython interrupt;
    const py::module_ json = py::module_::import("json");
    const py::object given = json.attr("loads")(arguments.dump());
    const py::object callee = py::module_::import(module.c_str()).attr(function.c_str());
    const py::object result = arguments.is_array() ? callee(*py::tuple(given)) : callee(**py::dict(given));
    const std::string text = text_of(json.attr("dumps")(result, py::arg("allow_nan") = false));
    return parse_json(text, called);
  } catch (const py::error_already_set& error) {
    translate(error, called);
  }
}

std::string embedded_python_version() { return std::to_string(PY_MAJOR_VERSION) + "." + std::to_string(PY_MINOR_VERSION); }

}  // namespace slacktier
