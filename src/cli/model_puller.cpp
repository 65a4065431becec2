#include "cli/model_puller.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/os/standard_error.h"
#include "hub/cache.h"
#include "hub/download.h"

namespace banyan::cli {
namespace {

// Ollama prefixes digests with their kind; a hub's hashes of large files are SHA-256.
std::string digest_of(const std::string& etag) {
  return (etag.size() == 64 ? "sha256:" : "") + etag;
}

}  // namespace

Status pull_for_clients(const std::string& name,
                        const std::function<bool(const PullProgress& progress)>& progress) {
  HubModel model = TRY(HubModel::parse(name));
  HubSettings settings = hub_settings();
  if (settings.offline && !cached_model(settings, model).empty()) return {};
  auto notice = [&](const std::string& text) {
    write_stderr(fmt::format("banyan: /api/pull {}: {}\n", model.text(), text));
  };
  auto of_file = [&](const std::string& etag, int64_t done, int64_t total) {
    return progress({digest_of(etag), done, total});
  };
  TRY(download_model(settings, model, notice, {}, of_file));
  return {};
}

}  // namespace banyan::cli
