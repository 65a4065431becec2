#include "cli/hub.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/units.h"
#include "cli/model_source.h"
#include "cli/options/model_options.h"
#include "cli/terminal/terminal.h"
#include "hub/cache.h"

namespace banyan::cli {
namespace {

Result<int> pull(const std::string& name) {
  HubModel model = TRY(HubModel::parse(name));
  std::string path = TRY(pull_model(model));
  write_stdout(path + "\n");
  return kExitSuccess;
}

VerbAction declare_pull(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  add_model_argument(app, *name);
  return [name] { return pull(*name); };
}

Result<int> list(bool json) {
  HubSettings settings = hub_settings();
  std::vector<CachedModel> models = TRY(cached_models(settings));
  if (json) {
    Json out = Json::array();
    for (const CachedModel& model : models) {
      out.push_back({{"model", model.repository},
                     {"bytes", model.bytes},
                     {"complete", model.complete},
                     {"gguf", model.ggufs},
                     {"revisions", model.revisions},
                     {"folder", model.folder}});
    }
    write_stdout(dump_json(out) + "\n");
    return kExitSuccess;
  }
  size_t columns = 0;
  for (const CachedModel& model : models) columns = std::max(columns, model.repository.size());
  for (const CachedModel& model : models) {
    std::string files;
    for (const std::string& gguf : model.ggufs) files += (files.empty() ? "  :" : " :") + gguf;
    write_stdout(
        fmt::format("{:<{}}  {:>8}  {}{}\n", model.repository, columns, format_bytes(model.bytes),
                    model.complete ? model.folder : "incomplete, or no model for Banyan", files));
  }
  if (models.empty()) fmt::print(stderr, "banyan: no models in {}\n", settings.cache);
  return kExitSuccess;
}

VerbAction declare_list(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json,
               "Print one JSON list: model, bytes, complete, gguf, revisions, folder");
  return [json] { return list(*json); };
}

Result<int> remove(const std::string& name) {
  HubModel model = TRY(HubModel::parse(name));
  if (name.find('@') != name.npos) {
    return invalid_argument("rm removes all revisions of a model; leave out the part from @ on");
  }
  int64_t bytes = TRY(remove_cached(hub_settings(), model));
  write_stdout(fmt::format("{} is removed, {} are free\n", model.text(), format_bytes(bytes)));
  return kExitSuccess;
}

VerbAction declare_remove(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("MODEL", *name,
                 "OWNER/NAME, as `banyan list` shows it; with :GGUF, that file alone")
      ->required()
      ->default_str("")
      ->type_name("NAME");
  return [name] { return remove(*name); };
}

}  // namespace

const Verb kPullVerb = {
    "pull", "Download a model from a Hugging Face hub, or bring it up to date",
    "  banyan pull Qwen/Qwen3-0.6B\n"
    "  banyan pull Qwen/Qwen3-0.6B@main\n"
    "  banyan pull Qwen/Qwen3-0.6B-GGUF:Q8_0\n"
    "  HF_ENDPOINT=https://hub.example HF_TOKEN=hf_... banyan pull OWNER/NAME\n"
    "\n"
    "Prints the folder, or the GGUF file. Only what an engine needs is fetched: config,\n"
    "tokenizer, templates and safetensors, or one GGUF file: the one after a colon, by its\n"
    "quantization or its name, or Q4_K_M where there are no safetensors. hf.co/OWNER/NAME is\n"
    "OWNER/NAME. Every other verb fetches it too, unless the cache has it. The cache is that of\n"
    "huggingface_hub: HF_HUB_CACHE, or hub in HF_HOME. HF_HUB_OFFLINE=1 asks no hub.\n",
    declare_pull};

const Verb kListVerb = {"list", "List the models that were downloaded",
                        "  banyan list\n"
                        "  banyan list --json\n",
                        declare_list};

const Verb kRemoveVerb = {"rm", "Remove a downloaded model",
                          "  banyan rm Qwen/Qwen3-0.6B\n"
                          "  banyan rm Qwen/Qwen3-0.6B-GGUF:Q8_0\n",
                          declare_remove};

}  // namespace banyan::cli
