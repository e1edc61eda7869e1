#include "python/environment.hpp"

#include <fstream>
#include <map>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// pyvenv.cfg: lines of `key = value`.
std::map<std::string, std::string> settings_of(const std::filesystem::path& file) {
  std::map<std::string, std::string> settings;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (const auto equals = line.find('='); equals != std::string::npos)
      settings[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  return settings;
}

// "3.11" of "3.11.2" or "3.11.2.final.0".
std::string minor_version(const std::string& version) {
  const auto first = version.find('.');
  return first == std::string::npos ? version : version.substr(0, version.find('.', first + 1));
}

}  // namespace

VirtualEnvironment read_virtual_environment(const std::filesystem::path& root, const std::string& version) {
  const std::string name = "VIRTUAL_ENV=" + root.string();
  auto settings = settings_of(root / "pyvenv.cfg");
  // `python -m venv` writes `version`, virtualenv and uv `version_info`.
  std::string theirs = settings["version"];
  if (theirs.empty()) theirs = settings["version_info"];
  if (theirs.empty())
    throw EnvironmentError(
        name +
        " is no virtual environment (there is no pyvenv.cfg that names a version): deactivate it, or make "
        "it with python" +
        version + " -m venv " + root.string());
  if (minor_version(theirs) != version)
    throw EnvironmentError(name + " is of Python " + theirs + ", this program embeds Python " + version +
                           ": make an environment with python" + version +
                           " -m venv, or run the probe in yours: pip install slacktier's source tree there, then python -m "
                           "slacktier.probe with the same arguments");
  VirtualEnvironment environment{root, root / "lib" / ("python" + version) / "site-packages",
                                 settings["include-system-site-packages"] == "true"};
  if (!std::filesystem::is_directory(environment.site_packages))
    throw EnvironmentError(name + ": " + environment.site_packages.string() +
                           " is no directory: make the environment again");
  return environment;
}

std::filesystem::path own_modules(const std::filesystem::path& program_directory, const std::filesystem::path& source) {
  const auto installed = (program_directory / ".." / "share" / "slacktier" / "python").lexically_normal();
  for (const auto& folder : {installed, source})
    if (std::filesystem::is_regular_file(folder / "slacktier" / "__init__.py")) return folder;
  throw EnvironmentError("the Python modules of slacktier are neither in " + installed.string() + " nor in " +
                         source.string() + ": install the program with cmake --install, or run it from its build folder");
}

std::string pip_command(const std::optional<std::filesystem::path>& root, const std::string& package) {
  if (root) return (*root / "bin" / "python").string() + " -m pip install " + package;
  return "python3 -m venv ENV && ENV/bin/pip install " + package + ", then set VIRTUAL_ENV=ENV";
}

}  // namespace slacktier
