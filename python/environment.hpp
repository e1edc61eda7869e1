// Where the embedded interpreter finds packages: a virtual environment's, and our own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace slacktier {

struct VirtualEnvironment {
  std::filesystem::path root, site_packages;
  bool system_packages = false;  // packages of the system's Python are visible in it
};

// The environment at `root` for an interpreter of `version` ("3.11"). Throws EnvironmentError when there is none, or it is
// of another minor version: the message names both and what to do.
VirtualEnvironment read_virtual_environment(const std::filesystem::path& root, const std::string& version);

// The directory that holds our package `slacktier`, for a program in `program_directory`: ../share/slacktier/python, or else
// `source`, the source tree's. Throws EnvironmentError when neither has it.
std::filesystem::path own_modules(const std::filesystem::path& program_directory, const std::filesystem::path& source);

// What installs a package of PyPI for the interpreter of `version`, in the environment at `root` when there is one.
std::string pip_command(const std::optional<std::filesystem::path>& root, const std::string& package);

}  // namespace slacktier
