#include "cli/options/disaggregation_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "cli/options/checks.h"
#include "client/url.h"
#include "server/prefill/prefill_store.h"

namespace banyan::cli {
namespace {

// What neither kind of worker can do so far.
Status check_engine(std::string_view mode, const EngineConfig& engine) {
  auto refuse = [&](std::string_view what) {
    return unsupported("--disaggregation-mode {} cannot be used with {} yet", mode, what);
  };
  if (engine.tp_size > 1) return refuse("--tp-size above 1");
  if (engine.emulated_steps) return refuse("emulated steps");
  if (!engine.radix_cache) {
    return invalid_argument("--disaggregation-mode {} needs the prefix cache", mode);
  }
  // On a CPU states have other bits than on a GPU, and no GPU's can be sent yet.
  if (engine.kernels == "cuda") return refuse("--device cuda");
  return {};
}

Status check_decode(const DisaggregationOptions& o, const EngineConfig& engine) {
  if (o.prefill_urls.empty()) {
    return invalid_argument(
        "--disaggregation-mode decode needs --disaggregation-prefill-urls, such as "
        "http://host:30000");
  }
  if (std::ssize(o.prefill_urls) > kWorkersMax) {
    return invalid_argument(
        "--disaggregation-prefill-urls: {} addresses are given; at most {} are "
        "supported",
        o.prefill_urls.size(), kWorkersMax);
  }
  for (const std::string& url : o.prefill_urls) {
    if (auto parsed = parse_server_url(url); !parsed) {
      return invalid_argument("--disaggregation-prefill-urls: {}", parsed.error().message);
    }
  }
  const CacheStorageConfig& storage = engine.cache_storage;
  if (storage.backend.find(',') != storage.backend.npos) {
    return unsupported(
        "--disaggregation-mode decode cannot be used with --hicache-storage-backend {} yet, with "
        "one backend only",
        storage.backend);
  }
  if (storage.prefetch_policy == "best_effort") {
    return invalid_argument(
        "--hicache-storage-prefetch-policy best_effort does not wait for states, but "
        "--disaggregation-mode decode has to");
  }
  return {};
}

}  // namespace

Status DisaggregationOptions::settle(EngineConfig& engine) const {
  if (given && mode != "decode") {
    return invalid_argument(
        "--disaggregation-prefill-urls and --disaggregation-min-tokens need --disaggregation-mode "
        "decode");
  }
  if (mode == "null") return {};
  engine.state_digest = true;
  TRY(check_engine(mode, engine));
  if (mode == "prefill") return {};
  int64_t& loaded_min = engine.cache_storage.prefetch_tokens_min;
  loaded_min = std::min(loaded_min, tokens_min);
  return check_decode(*this, engine);
}

EngineAssembly::Storage DisaggregationOptions::storage(const ServerConfig& server) const {
  EngineAssembly::Storage storage;
  if (mode != "decode") return storage;
  PrefillConfig config{.tokens_min = tokens_min};
  config.route.worker_urls = prefill_urls;
  if (!server.api_keys.empty()) config.route.worker_api_key = server.api_keys.front();
  storage.last = [config](const TierStates& states) { return make_prefill_store(config, states); };
  return storage;
}

void add_disaggregation_options(CLI::App& app, DisaggregationOptions& o) {
  OptionGroup group(app, "Prefill and decode on different servers");
  auto given = [&o](const std::string&) { o.given = true; };
  app.add_option("--disaggregation-mode", o.mode,
                 "prefill: compute prompts for other servers, too; decode: have long prompts "
                 "computed by --disaggregation-prefill-urls")
      ->transform(one_of({"null", "prefill", "decode"}))
      ->type_name("NAME");
  app.add_option("--disaggregation-prefill-urls", o.prefill_urls,
                 "decode: addresses of servers in prefill mode, such as http://host:30000. They "
                 "must have the same model and options, and get the first --api-key")
      ->default_str("")
      ->each(given)
      ->type_name("URL");
  app.add_option("--disaggregation-min-tokens", o.tokens_min,
                 "decode: prompts of which fewer tokens are uncached are computed here")
      ->check(between(int64_t{1}, int64_t{1} << 31))
      ->each(given)
      ->type_name("N");
}

}  // namespace banyan::cli
