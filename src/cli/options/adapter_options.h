// Options of verbs that load LoRA adapters with their model.
#pragma once

#include <string>

#include "banyan/config.h"
#include "banyan/status.h"

namespace CLI {
class App;
}

namespace banyan::cli {

struct AdapterOptions {
  std::string of_all;    // the adapter of requests that name none; empty: the model as it is
  bool runtime = false;  // clients may load and unload adapters

  // Makes room for adapters to come, if any may.
  void settle(EngineConfig& config) const;
};

// `serves`: clients may be allowed to load adapters.
void add_adapter_options(CLI::App& app, EngineConfig& config, AdapterOptions& options,
                         bool serves = false);

// "NAME=PATH", "PATH" (which is its name, too) or JSON with lora_name and lora_path, or name and
// path.
Result<AdapterSource> parse_adapter(const std::string& text);

}  // namespace banyan::cli
