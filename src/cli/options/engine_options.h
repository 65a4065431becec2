// Options of an engine that serves many requests at once, with SGLang's names and what vLLM and
// llama-server call the same.
#pragma once

#include "banyan/config.h"
#include "banyan/status.h"
#include "cli/options/storage_options.h"

namespace CLI {
class App;
}

namespace banyan::cli {

struct EngineOptions {
  EngineConfig config;
  bool no_radix_cache = false;
  bool priority_scheduling = false;
  StorageOptions storage;

  // Carries the flags into `config` and checks it.
  Status settle();
};

// With limits for many clients.
EngineOptions serving_options();

// The options, besides the model's, that cached states depend on: --page-size and
// --reuse-generated-state. Engines that differ in them have other state digests.
void add_state_options(CLI::App& app, EngineConfig& config);

// All, with those.
void add_engine_options(CLI::App& app, EngineOptions& options);

}  // namespace banyan::cli
