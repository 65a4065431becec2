#include "cli/model_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/os/standard_error.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "llm/llm_parts.h"
#include "weights/files/model_folder.h"

namespace banyan::cli {

Result<std::string> pull_model(const HubModel& model) {
  ProgressLine progress("downloading");
  auto notice = [&](const std::string& text) {
    write_stderr(fmt::format("banyan: {}: {}\n", model.text(), text));
  };
  return download_model(hub_settings(), model, notice, progress.load_progress());
}

Result<std::string> locate_model(const std::string& name) {
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) {
    TRY(check_model_path(name));
    return name;
  }
  bool has_slash = name.find('/') != name.npos;
  std::string_view first = std::string_view(name).substr(0, name.find('/'));
  bool is_path = has_slash && (first.empty() || first == "~" || first.starts_with('.'));
  bool is_file = name.ends_with(".gguf");
  if (is_file && (is_path || !has_slash || std::filesystem::exists(first, ignored))) {
    return not_found("{}: no such file", name);
  }
  if (is_path) return not_found("{}: no such folder", name);
  Result<HubModel> model = HubModel::parse(name);
  if (!model) {
    if (name.find(':') != name.npos) {
      return not_found("{}: no such folder, and {}", name, model.error().message);
    }
    return not_found("{}: no such folder{}", name,
                     has_slash ? "" : ", nor OWNER/NAME of a model on a hub");
  }
  if (!model->with_host && std::filesystem::exists(model->owner, ignored)) {
    return not_found(
        "{}: no such folder; not fetched from the hub, since a folder {} exists here: `banyan pull "
        "{}` fetches it",
        name, model->owner, name);
  }
  HubSettings settings = hub_settings();
  if (std::string path = cached_model(settings, *model); !path.empty()) return path;
  if (!settings.offline) {
    write_stderr(fmt::format("banyan: there is no folder {} here; asking {} for that model\n",
                             model->text(), settings.endpoint));
  }
  return pull_model(*model);
}

Status locate_adapters(EngineConfig& config) {
  for (AdapterSource& adapter : config.adapters) {
    std::error_code ignored;
    if (std::filesystem::exists(adapter.path, ignored)) continue;
    adapter.path = TRY(locate_model(adapter.path));
  }
  return {};
}

Result<std::unique_ptr<Llm>> load_llm(const EngineConfig& config, EngineAssembly::Storage storage) {
  EngineConfig located = config;
  located.model_path = TRY(locate_model(config.model_path));
  if (!config.draft_model_path.empty()) {
    located.draft_model_path = TRY(locate_model(config.draft_model_path));
  }
  TRY(locate_adapters(located));
  ProgressLine progress("loading");
  return load_with_storage(located, progress.load_progress(), std::move(storage));
}

}  // namespace banyan::cli
