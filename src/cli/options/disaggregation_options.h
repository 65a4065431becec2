// Options of servers that compute prompts for others, and of those that have theirs computed.
#pragma once

#include <string>
#include <vector>

#include "banyan/status.h"
#include "cli/options/engine_options.h"
#include "engine/assemble.h"
#include "server/config.h"

namespace CLI {
class App;
}

namespace banyan::cli {

struct DisaggregationOptions {
  std::string mode = "null";
  std::vector<std::string> prefill_urls;
  int64_t tokens_min = 2048;
  bool given = false;  // an option that only decode has

  // Checks the options against the engine's, which it completes.
  Status settle(EngineConfig& engine) const;
  // Where the engine finds states that prefill workers have computed; `server` has the key that
  // they all require.
  EngineAssembly::Storage storage(const ServerConfig& server) const;
};

void add_disaggregation_options(CLI::App& app, DisaggregationOptions& options);

}  // namespace banyan::cli
