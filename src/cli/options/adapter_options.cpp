#include "cli/options/adapter_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/signed.h"
#include "cli/options/checks.h"

namespace banyan::cli {
namespace {

// Room for adapters that clients load, if no option says how much.
constexpr int kRuntimeAdapters = 8;

std::string text_of(const Json& json, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto found = json.find(name);
    if (found != json.end() && found->is_string()) return found->get<std::string>();
  }
  return "";
}

void add_adapter(EngineConfig& config, const std::string& option, const std::string& text) {
  Result<AdapterSource> adapter = parse_adapter(text);
  if (!adapter) throw CLI::ValidationError(option, adapter.error().message);
  config.adapters.push_back(*std::move(adapter));
}

// llama.cpp's: every request has it.
void add_for_all(EngineConfig& config, AdapterOptions& options, const std::string& option,
                 AdapterSource adapter) {
  if (!options.of_all.empty()) {
    throw CLI::ValidationError(option, "a request has one adapter, and " + quote(options.of_all) +
                                           " is given for all; --lora-paths loads several");
  }
  options.of_all = adapter.name;
  config.adapters.push_back(std::move(adapter));
}

// Other engines need it for any adapter.
void add_switch(CLI::App& app, AdapterOptions& options, bool serves) {
  CLI::Option* option =
      app.add_flag("--enable-lora", options.runtime,
                   "Clients may load adapters from folders of this machine, and unload them, at "
                   "/v1/load_lora_adapter and the like");
  if (!serves) option->group("");
}

}  // namespace

void AdapterOptions::settle(EngineConfig& config) const {
  if (config.adapters_max > 0) return;
  config.adapters_max = narrow<int>(std::ssize(config.adapters));
  if (runtime) config.adapters_max = std::max(kRuntimeAdapters, config.adapters_max);
}

Result<AdapterSource> parse_adapter(const std::string& text) {
  AdapterSource adapter{.name = text, .path = text};
  if (text.starts_with('{')) {
    Json json = TRY(parse_json(text, "the adapter"));
    adapter = {text_of(json, {"lora_name", "name"}), text_of(json, {"lora_path", "path"})};
  } else if (size_t equals = text.find('='); equals != text.npos) {
    adapter = {text.substr(0, equals), text.substr(equals + 1)};
  }
  if (adapter.name.empty() || adapter.path.empty()) {
    return invalid_argument("{} is not NAME=PATH, nor JSON with lora_name and lora_path",
                            quote(text));
  }
  return adapter;
}

void add_adapter_options(CLI::App& app, EngineConfig& config, AdapterOptions& options,
                         bool serves) {
  OptionGroup group(app, "Adapters");
  app.add_option_function<std::vector<std::string>>(
         "--lora-paths,--lora-modules",
         [&config](const std::vector<std::string>& all) {
           for (const std::string& text : all) add_adapter(config, "--lora-paths", text);
         },
         "LoRA adapters that requests may name: folders as PEFT saves them, or OWNER/NAME on a "
         "hub; without a name, the path is the name")
      ->default_str("")
      ->type_name("NAME=PATH");
  app.add_option_function<std::vector<std::string>>(
         "--lora",
         [&config, &options](const std::vector<std::string>& all) {
           for (const std::string& path : all) {
             add_for_all(config, options, "--lora", {path, path});
           }
         },
         "LoRA adapter of all requests that name no other")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("PATH");
  app.add_option_function<std::vector<std::string>>(
         "--lora-scaled",
         [&config, &options](const std::vector<std::string>& words) {
           const char* end = words[1].data() + words[1].size();
           double scale = 0;
           auto [stop, error] = std::from_chars(words[1].data(), end, scale);
           if (error != std::errc() || stop != end) {
             throw CLI::ValidationError("--lora-scaled", quote(words[1]) + " is not a number");
           }
           add_for_all(config, options, "--lora-scaled", {words[0], words[0], scale});
         },
         "The same, with its scaling multiplied by SCALE")
      ->expected(2)
      ->default_str("")
      ->type_name("PATH SCALE");
  app.add_option("--max-loaded-loras,--max-cpu-loras", config.adapters_max,
                 "Adapters that may be loaded at once, for which memory is reserved; 0: those "
                 "given here, and 8 with --enable-lora")
      ->check(between(0, 4096))
      ->type_name("N");
  app.add_option("--max-lora-rank", config.adapter_rank_max,
                 "Largest rank of an adapter; 0: that of those given here, or 16")
      ->check(between(0, 4096))
      ->type_name("R");
  add_switch(app, options, serves);
}

}  // namespace banyan::cli
