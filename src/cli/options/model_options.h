// Options of all verbs that load a model: which one, its weight format, and how it computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "banyan/config.h"

namespace CLI {
class App;
}

namespace banyan::cli {

// A word after MODEL that belongs to the verb.
struct NextWord {
  const char* name;  // "PROMPT"
  const char* description;
  std::optional<std::string>* value;
};

// --model, -m, --model-path, and MODEL as a word without a dash, followed by `next`. Parsing fails
// if no model is given. Returns MODEL.
CLI::Option* add_model_argument(CLI::App& app, std::string& model,
                                std::optional<NextWord> next = {});

// --log-level, which takes effect while parsing. `level` is the default that --help shows.
void add_log_level(CLI::App& app, const std::string& level = "warn");

// --threads, for verbs that load no model.
void add_threads_option(CLI::App& app, int& threads, const char* description);

// --quantization-override, which sets the format of single matrices.
void add_quantization_overrides(CLI::App& app, std::vector<std::string>& overrides);

struct ModelUse {
  std::optional<NextWord> next = {};
  bool word = true;       // MODEL may be a word; either it or --model is required
  bool generates = true;  // false: without the options of speculative decoding
  bool computes = true;   // false: without the options of how threads run
  const char* log_level = "warn";
};

// MODEL and all options of loading it, with the names that other engines use.
void add_model_options(CLI::App& app, EngineConfig& config, const ModelUse& use = {});

}  // namespace banyan::cli
