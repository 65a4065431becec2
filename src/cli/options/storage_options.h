// Options of cache storage outside memory, under SGLang's names.
#pragma once

#include "banyan/config.h"
#include "banyan/status.h"

namespace CLI {
class App;
}

namespace banyan::cli {

struct StorageOptions {
  bool enabled = false;
  double size_gb = 0, write_budget_gb = 0, host_size_gb = 0;
  bool given = false;  // an option was given that needs a backend
};

void add_storage_options(CLI::App& app, StorageOptions& options, EngineConfig& config);

// Copies the options into `config`; errors say what is missing.
Status settle(const StorageOptions& options, EngineConfig& config);

}  // namespace banyan::cli
