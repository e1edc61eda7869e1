// What was built, found out in every build.
#pragma once

namespace slacktier {

struct BuildFacts {
  const char* version;
  const char* commit;  // 40 digits or "unknown"
  bool dirty;          // tracked files differ from the commit
};
BuildFacts build_facts();

}  // namespace slacktier
