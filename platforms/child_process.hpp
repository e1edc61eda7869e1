// Work in a process of its own, beside this one: what a neighbour on the same machine does.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

namespace slacktier {

class ChildProcess {
 public:
  // Writes to its owner: announce() once the work has begun, and its report at the end.
  class Link {
   public:
    explicit Link(int descriptor) : descriptor_(descriptor) {}
    void announce() const;  // more than once does nothing
   private:
    friend class ChildProcess;
    int descriptor_;
    mutable bool announced_ = false;
  };

  // Forks; `body` runs in the child and returns its report, any text. stop() makes interrupted() (platforms/program.hpp)
  // true there. Before any thread was started, since threads do not live on in a child. `name` stands in errors. Throws
  // std::system_error when the system refuses the process.
  ChildProcess(std::string name, const std::function<std::string(const Link&)>& body);
  ~ChildProcess();  // ends it the hard way when it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns when the child has announced itself. Throws DeviceError with what the child said when it failed before.
  void wait_until_begun();
  // Asks it to end, waits, and returns its report. Throws DeviceError with what it said when it failed.
  std::string stop();

 private:
  std::string end();

  std::string name_;
  pid_t process_ = -1;
  int from_child_ = -1;
  std::string received_;
};

}  // namespace slacktier
