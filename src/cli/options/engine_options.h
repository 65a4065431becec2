// Options of an engine that serves many requests at once: SGLang's names, with vLLM's and
// llama-server's as aliases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  std::optional<int64_t> prefill_tokens_max;  // as in SGLang; only checked
  std::string emulate_steps;                  // a file
  StorageOptions storage;

  // Applies the flags to `config`, reads the files they name and validates it.
  Status settle();
};

// Default options with limits for many clients.
EngineOptions serving_options();

// --page-size and --reuse-generated-state: the options, other than the model's, that cached states
// depend on. Engines that differ in them have different state digests.
void add_state_options(CLI::App& app, EngineConfig& config);

// All engine options, including those of add_state_options.
void add_engine_options(CLI::App& app, EngineOptions& options);

}  // namespace banyan::cli
