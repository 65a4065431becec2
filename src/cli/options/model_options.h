// Options of every verb that has to do with a model: which one, in what form, on what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "banyan/config.h"

namespace CLI {
class App;
}

namespace banyan::cli {

// A word after MODEL that the verb takes for its own.
struct NextWord {
  const char* name;  // "PROMPT"
  const char* description;
  std::optional<std::string>* value;
};

// --model, -m, --model-path, and MODEL as a word without a dash; `next` follows it. Without any of
// them parsing fails.
void add_model_argument(CLI::App& app, std::string& model, std::optional<NextWord> next = {});

// --log-level, which takes effect while parsing; `level` is what holds without it.
void add_log_level(CLI::App& app, const std::string& level = "warn");

// --threads of verbs that load no model.
void add_threads_option(CLI::App& app, int& threads, const char* description);

// --quantization-override, for the formats of single matrices.
void add_quantization_overrides(CLI::App& app, std::vector<std::string>& overrides);

struct ModelUse {
  std::optional<NextWord> next = {};
  bool word = true;       // MODEL may be a word; it is required, as a word or as --model
  bool generates = true;  // else options about drafts have no effect and are left out
  bool computes = true;   // else those about how threads run are
  const char* log_level = "warn";
};

// The model and all options about loading it, with the names that other engines have for them.
void add_model_options(CLI::App& app, EngineConfig& config, const ModelUse& use = {});

}  // namespace banyan::cli
