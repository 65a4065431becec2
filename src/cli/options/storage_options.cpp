#include "cli/options/storage_options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "cli/options/checks.h"
#include "tier/registry.h"

namespace banyan::cli {
namespace {

constexpr double kGb = 1e9;
constexpr const char* kMemoryHint =
    "the cache lies in this machine's memory already, and a second tier there would be the same "
    "bytes twice; raise --max-total-tokens or --mem-fraction-static";

struct NumberKey {
  const char* name;
  double CacheStorageConfig::* field;
};
constexpr std::array kNumbers = std::to_array<NumberKey>({
    {"prefetch_timeout_base", &CacheStorageConfig::prefetch_timeout_s},
    {"prefetch_timeout_per_ki_token", &CacheStorageConfig::prefetch_timeout_per_ki_token_s},
});
constexpr const char* kKeys =
    "prefetch_threshold, prefetch_timeout_base, prefetch_timeout_per_ki_token, url";

Status set_extra(const std::string& key, const Json& value, CacheStorageConfig& config) {
  for (const NumberKey& number : kNumbers) {
    if (key != number.name) continue;
    if (!value.is_number()) return invalid_argument("{} is {}, not a number", key, value.dump());
    config.*number.field = value.get<double>();
    return {};
  }
  if (key == "prefetch_threshold") {
    if (!value.is_number_integer()) {
      return invalid_argument("{} is {}, not an integer", key, value.dump());
    }
    config.prefetch_tokens_min = value.get<int64_t>();
    return {};
  }
  if (key == "url") {
    if (!value.is_string()) return invalid_argument("{} is {}, not a string", key, value.dump());
    config.url = value.get<std::string>();
    return {};
  }
  return invalid_argument("unknown key {} with value {}; supported: {}", quote(key), value.dump(),
                          kKeys);
}

Status set_extras(const std::string& text, CacheStorageConfig& config) {
  Json extra = TRY(parse_json(text, "--hicache-storage-backend-extra-config"));
  if (!extra.is_object()) return invalid_argument("{} is not a JSON object", quote(text));
  for (const auto& [key, value] : extra.items()) TRY(set_extra(key, value, config));
  return {};
}

// Options of the host's memory below a device.
void add_memory_options(CLI::App& app, StorageOptions& o, CacheStorageConfig& config) {
  app.add_option("--hicache-size", o.host_size_gb,
                 "GB of this machine's memory that keep what a device evicts; only with a device")
      ->check(between(0.0, 1e6))
      ->type_name("GB");
  app.add_option("--hicache-ratio", config.host_ratio,
                 "The same, as a multiple of the device's memory for the cache")
      ->check(between(0.0, 1e6))
      ->type_name("N");
  constexpr std::array kRefused =
      std::to_array<const char*>({"--hicache-io-backend", "--hicache-mem-layout"});
  for (const char* name : kRefused) {
    app.add_option_function<std::string>(
           name, [name](const std::string&) { throw CLI::ValidationError(name, kMemoryHint); }, "")
        ->expected(0, 1)
        ->default_str("")
        ->group("");
  }
}

// Requirements of the disk store, and options that only it has.
Status check_disk(const CacheStorageConfig& config) {
  std::string_view backend = config.backend;
  if (backend == "redis" && !config.directory.empty()) {
    return invalid_argument(
        "--hicache-storage-dir is for the disk and file backends, not for redis");
  }
  if (backend != "redis" && config.directory.empty()) {
    return invalid_argument("--hicache-storage-backend {} needs --hicache-storage-dir", backend);
  }
  bool disk = backend.starts_with("disk");
  if (disk && config.size_bytes == 0) {
    return invalid_argument("--hicache-storage-backend {} needs --hicache-storage-size, in GB",
                            backend);
  }
  if (!disk && config.size_bytes > 0) {
    return invalid_argument("--hicache-storage-size is for the disk backend, not for {}", backend);
  }
  if (!disk && config.snapshot_fraction > 0) {
    return invalid_argument("--hicache-snapshot-fraction is for the disk backend, not for {}",
                            backend);
  }
  return {};
}

// The address of a shared store. A file store that stands alone has a folder instead.
Status check_shared(const CacheStorageConfig& config) {
  std::string_view backend = config.backend;
  bool redis = backend.ends_with("redis"), file = backend == "disk,file";
  if (!redis && !file) {
    if (config.url.empty()) return {};
    return invalid_argument("url is for a shared store, not for {}", backend);
  }
  if (config.url.empty()) {
    return invalid_argument(
        "--hicache-storage-backend {} needs an address: --hicache-storage-backend-extra-config "
        R"('{{"url": "{}"}}')",
        backend, redis ? "redis://host:6379" : "file:///mnt/shared/banyan");
  }
  if (file && !config.url.starts_with("file:///")) {
    return invalid_argument("url {} must have the form file:///FOLDER", quote(config.url));
  }
  return {};
}

}  // namespace

void add_storage_options(CLI::App& app, StorageOptions& o, EngineConfig& engine) {
  CacheStorageConfig& config = engine.cache_storage;
  OptionGroup group(app, "Keeping cached prefixes beyond memory");
  app.add_flag("--enable-hierarchical-cache", o.enabled,
               "Keep cached prefixes in --hicache-storage-backend, which implies this option");
  app.add_option("--hicache-storage-backend", config.backend,
                 "disk: a local disk, survives restarts; file: a file system that several servers "
                 "share; redis: a server with Redis' protocol; disk,file or disk,redis: the disk "
                 "first, then the shared store")
      ->type_name("NAME");
  // For options that have no effect without a backend.
  auto given = [&o](const std::string&) { o.given = true; };
  app.add_option("--hicache-storage-dir", config.directory,
                 "disk, file: the folder, created if necessary. It contains readable prompts")
      ->each(given)
      ->type_name("DIR");
  app.add_option("--hicache-storage-size", o.size_gb, "disk: maximum size in GB")
      ->check(between(0.0, 1e9))
      ->each(given)
      ->type_name("GB");
  app.add_option("--hicache-snapshot-fraction", config.snapshot_fraction,
                 "disk: share of its size for snapshots of recurrent layers; default 0.5")
      ->check(between(0.01, 0.99))
      ->each(given)
      ->type_name("N");
  app.add_option("--hicache-storage-key-file", config.key_file,
                 "File with a secret; records written without it are ignored")
      ->each(given)
      ->type_name("FILE");
  app.add_option("--hicache-storage-write-budget", o.write_budget_gb,
                 "Maximum GB to write per day; 0: no limit")
      ->check(between(0.0, 1e9))
      ->each(given)
      ->type_name("GB");
  app.add_option("--hicache-write-policy", config.write_policy,
                 "write_back: pages near eviction, and all at shutdown; write_through: every page "
                 "soon after it is computed; write_through_selective: pages at their second use")
      ->transform(one_of({"write_back", "write_through", "write_through_selective"}))
      ->each(given)
      ->type_name("NAME");
  app.add_option("--hicache-storage-prefetch-policy", config.prefetch_policy,
                 "While a request's prefix is being loaded: best_effort starts with what is there, "
                 "timeout waits for a limited time, wait_complete waits")
      ->transform(one_of({"best_effort", "timeout", "wait_complete"}))
      ->each(given)
      ->type_name("NAME");
  app.add_option("--hicache-flush-seconds", config.flush_s,
                 "Maximum seconds at shutdown to write what is not stored yet")
      ->check(between(0.0, 1e6))
      ->each(given)
      ->type_name("S");
  app.add_option_function<std::string>(
         "--hicache-storage-backend-extra-config",
         [&config](const std::string& text) {
           Status set = set_extras(text, config);
           if (!set) {
             throw CLI::ValidationError("--hicache-storage-backend-extra-config",
                                        set.error().message);
           }
         },
         std::string("An object with any of ") + kKeys)
      ->each(given)
      ->type_name("JSON");
  add_memory_options(app, o, config);
}

Status settle(const StorageOptions& o, EngineConfig& engine) {
  CacheStorageConfig& config = engine.cache_storage;
  config.size_bytes = static_cast<int64_t>(o.size_gb * kGb);
  config.host_size_bytes = static_cast<int64_t>(o.host_size_gb * kGb);
  config.write_budget_bytes_per_day = static_cast<int64_t>(o.write_budget_gb * kGb);
  bool host = config.host_size_bytes > 0 || config.host_ratio > 0;
  bool device = engine.kernels == "cuda" || engine.kernels.starts_with("fenced");
  if (host && !device) {
    return invalid_argument("--hicache-size and --hicache-ratio: {}", kMemoryHint);
  }
  std::string_view backend = config.backend;
  if (backend.empty()) {
    if (host) return {};
    if (o.enabled) {
      return invalid_argument("--enable-hierarchical-cache: {}; or give --hicache-storage-backend",
                              kMemoryHint);
    }
    if (o.given) {
      return invalid_argument("options of cache storage need --hicache-storage-backend");
    }
    return {};
  }
  TRY(find_backends(backend));
  TRY(check_disk(config));
  return check_shared(config);
}

}  // namespace banyan::cli
