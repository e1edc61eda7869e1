// A served table's memory as the network adapter knows it: registered for remote reads and nothing else. Private to tier.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tier/remote/verbs.hpp"
#include "tier/server_session.hpp"

namespace slacktier {

class RdmaServer {
 public:
  // Registers the table's memory in chunks. Throws EnvironmentError as VerbsDevice does.
  RdmaServer(const ServedTable& table, const std::string& device, int gid_index, const ServedTable::ProgressCall& progress);

  // Queue pairs for a reader's, which live as long as the grant. Throws UsageError (GIDs that cannot reach each other),
  // EnvironmentError.
  std::unique_ptr<RemoteGrant> attach(const protocol::Attach& reader, protocol::Attached& answer);
  const std::string& describe() const { return device_.describe(); }

 private:
  VerbsDevice device_;
  CompletionQueue queue_;  // of pairs that never complete anything: readers do all the work
  std::vector<MemoryRegion> regions_;
  std::vector<protocol::MemoryChunk> chunks_;
};

}  // namespace slacktier
