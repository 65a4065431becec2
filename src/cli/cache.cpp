// banyan cache ls, verify, gc: what a server's storage folder holds.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

#include "base/error.h"
#include "base/json_text.h"
#include "base/os/status_line.h"
#include "base/units.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "tier/cache_folder.h"

namespace banyan::cli {
namespace {

struct CacheOptions {
  std::string folder, only, keep, key_file;
  double older_than_days = -1, size_gb = -1;
  bool all = false, dry_run = false, json = false;
};

void add_cache_folder(CLI::App& app, CacheOptions& o) {
  app.add_option("DIR", o.folder, "Folder of a disk or a file store (--hicache-storage-dir)")
      ->required()
      ->type_name("DIR");
}

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string day_and_time(int64_t seconds) {
  std::tm local = {};
  std::time_t time = seconds;
  ::localtime_r(&time, &local);
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

Json digest_json(const CacheDigest& digest) {
  Json classes = Json::array();
  for (const CacheClass& c : digest.classes) {
    classes.push_back({{"class", c.unit_class},
                       {"holds", c.units_are},
                       {"units", c.units},
                       {"record_bytes", c.record_bytes}});
  }
  return {{"digest", digest.digest}, {"folder", digest.folder},    {"model", digest.model},
          {"bytes", digest.bytes},   {"last_used", digest.used_s}, {"classes", std::move(classes)}};
}

std::string digest_text(const CacheDigest& digest) {
  std::string text = fmt::format("{}  {:>8}  {}  {}\n", digest.digest.substr(0, 16),
                                 format_bytes(digest.bytes), day_and_time(digest.used_s),
                                 digest.model.empty() ? "(unknown model)" : digest.model);
  for (const CacheClass& c : digest.classes) {
    text += fmt::format("  {:>14}  {:>8}  {} of {}\n", format_count(c.units),
                        format_bytes(c.units * c.record_bytes),
                        c.units_are.empty() ? fmt::format("class {}", c.unit_class) : c.units_are,
                        format_bytes(c.record_bytes));
  }
  return text;
}

Result<int> cache_ls(const CacheOptions& o) {
  std::vector<CacheDigest> digests;
  auto entries = system_storage().list(o.folder);
  bool is_empty = entries && entries->empty();  // of no store yet
  if (!is_empty) digests = TRY(list_cache(system_storage(), o.folder));
  if (o.json) {
    Json list = Json::array();
    for (const CacheDigest& digest : digests) list.push_back(digest_json(digest));
    write_stdout(dump_json({{"digests", std::move(list)}}) + "\n");
    return kExitSuccess;
  }
  std::string text =
      fmt::format("{:<16}  {:>8}  {:<16}  {}\n", "DIGEST", "SIZE", "LAST USED", "MODEL");
  for (const CacheDigest& digest : digests) text += digest_text(digest);
  write_stdout(digests.empty() ? fmt::format("{} holds no cached states\n", o.folder) : text);
  return kExitSuccess;
}

Result<int> cache_verify(const CacheOptions& o) {
  CacheCheck check;
  std::optional<RecordKey> key;
  if (!o.key_file.empty()) key = TRY(read_record_key(o.key_file));
  {
    StatusLine status;
    auto next = std::chrono::steady_clock::now();
    check = TRY(verify_cache(system_storage(), o.folder, key, [&](const CacheCheck& so_far) {
      if (status.visible() && std::chrono::steady_clock::now() >= next) {
        next += std::chrono::milliseconds(200);
        status.show(fmt::format("verifying: {} records, {}, {} bad", format_count(so_far.records),
                                format_bytes(so_far.bytes), so_far.bad));
      }
      return true;
    }));
  }
  int code = check.bad == 0 ? kExitSuccess : kExitFailure;
  if (o.json) {
    write_stdout(dump_json({{"records", check.records},
                            {"bytes", check.bytes},
                            {"bad", check.bad},
                            {"first_bad", check.first_bad}}) +
                 "\n");
    return code;
  }
  std::string text = fmt::format("{} records, {}: ", check.records, format_bytes(check.bytes));
  text += check.bad == 0 ? "all are sound\n" : fmt::format("{} are bad\n", check.bad);
  for (const std::string& bad : check.first_bad) text += "  " + bad + "\n";
  if (check.bad > 0) text += "A server that reads one computes again and rewrites it.\n";
  write_stdout(text);
  return code;
}

Result<int> cache_gc(const CacheOptions& o) {
  if (!o.all && o.only.empty() && o.keep.empty() && o.older_than_days < 0 && o.size_gb < 0) {
    return invalid_argument(
        "give at least one of --older-than DAYS, --size GB, --digest HEX, --keep HEX or --all");
  }
  CacheLimits limits{.only = o.only, .keep = o.keep, .dry_run = o.dry_run};
  if (o.older_than_days >= 0) limits.unused_s = static_cast<int64_t>(o.older_than_days * 86400);
  if (o.size_gb >= 0) limits.size_bytes = static_cast<int64_t>(o.size_gb * 1e9);
  CacheRemoved removed = TRY(shrink_cache(system_storage(), o.folder, limits, now_seconds()));
  if (o.json) {
    write_stdout(dump_json({{"digests", removed.digests},
                            {"files", removed.files},
                            {"bytes", removed.bytes},
                            {"dry_run", o.dry_run}}) +
                 "\n");
    return kExitSuccess;
  }
  write_stdout(fmt::format("{}: {} digests and {} single files, {}\n",
                           o.dry_run ? "would go" : "removed", removed.digests, removed.files,
                           format_bytes(removed.bytes)));
  return kExitSuccess;
}

VerbAction declare_cache_ls(CLI::App& app) {
  auto o = std::make_shared<CacheOptions>();
  add_cache_folder(app, *o);
  app.add_flag("--json", o->json, "Print one JSON object: digests");
  return [o] { return cache_ls(*o); };
}

VerbAction declare_cache_verify(CLI::App& app) {
  auto o = std::make_shared<CacheOptions>();
  add_cache_folder(app, *o);
  app.add_option("--key-file", o->key_file,
                 "The --hicache-storage-key-file that the records were written with")
      ->type_name("FILE");
  app.add_flag("--json", o->json, "Print one JSON object: records, bytes, bad, first_bad");
  return [o] { return cache_verify(*o); };
}

VerbAction declare_cache_gc(CLI::App& app) {
  auto o = std::make_shared<CacheOptions>();
  add_cache_folder(app, *o);
  app.add_option("--older-than", o->older_than_days, "Remove what was not used for this many days")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("DAYS");
  app.add_option("--size", o->size_gb,
                 "Remove what was used longest ago, until only this much is left")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("GB");
  app.add_option("--digest", o->only, "Only remove digests that begin with this")->type_name("HEX");
  app.add_option("--keep", o->keep, "Keep digests that begin with this")->type_name("HEX");
  app.add_flag("--all", o->all, "Everything");
  app.add_flag("--dry-run", o->dry_run, "Show what would be removed, and remove nothing");
  app.add_flag("--json", o->json, "Print one JSON object: digests, files, bytes, dry_run");
  return [o] { return cache_gc(*o); };
}

}  // namespace

const Verb kCacheLsVerb = {
    "cache ls", "What a storage folder holds",
    "  banyan cache ls /var/cache/banyan\n"
    "\n"
    "A line for each digest of a model's states, as `banyan inspect --digest` shows\n"
    "them, and below it what is stored of each class of states.\n",
    declare_cache_ls};

const Verb kCacheVerifyVerb = {
    "cache verify", "Read a storage folder and check every record",
    "  banyan cache verify /var/cache/banyan\n"
    "\n"
    "The exit code is 1 where a record is damaged. A server may use the folder meanwhile.\n",
    declare_cache_verify};

const Verb kCacheGcVerb = {
    "cache gc", "Remove from a storage folder what is not needed",
    "  banyan cache gc /var/cache/banyan --older-than 30\n"
    "  banyan cache gc /var/cache/banyan --keep 3f2a --dry-run\n"
    "  banyan cache gc /var/cache/banyan --size 100\n"
    "\n"
    "What is named is what may go: of several conditions all must hold. States of one digest go\n"
    "together; of a folder that machines share (backend `file`), --older-than removes single\n"
    "files too. A folder of backend `disk` must not be in use.\n",
    declare_cache_gc};

}  // namespace banyan::cli
