// A scratch directory that tests fill with what /proc and /sys would hold; removed in the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace slacktier::test {

class ProcTree {
 public:
  ProcTree() {
    std::string name = (std::filesystem::temp_directory_path() / "slacktier-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = name;
  }
  ~ProcTree() { std::filesystem::remove_all(root_); }
  ProcTree(const ProcTree&) = delete;
  ProcTree& operator=(const ProcTree&) = delete;

  const std::string& root() const { return root_; }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  std::string root_;
};

}  // namespace slacktier::test
