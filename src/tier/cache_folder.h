// Inspects the folder of a disk or a file store for people: what is in it, whether it is intact,
// and how to shrink it. Needs no model, and may inspect a folder that a server is using.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "tier/registry.h"
#include "tier/storage.h"

namespace banyan {

struct CacheClass {
  int unit_class = 0;
  std::string units_are;  // "pages", as meta.json says
  int64_t units = 0;      // records listed in the index
  int64_t record_bytes = 0;
};

struct CacheDigest {
  std::string folder;  // DIR, or a rank's below it
  std::string digest;
  bool shared = false;  // of a file store
  std::string model;    // "" where meta.json is lost
  int64_t bytes = 0;    // size of its files
  int64_t used_s = 0;   // last use, in seconds since 1970
  std::vector<CacheClass> classes;

  std::string path() const { return folder + "/" + digest; }
};

// The most recently used first.
Result<std::vector<CacheDigest>> list_cache(Storage& storage, const std::string& folder);

struct CacheCheck {
  int64_t records = 0, bytes = 0;  // that were read
  int64_t bad = 0;
  std::vector<std::string> first_bad;  // where, and why
};
// Reads every record that was written with `key`, or without a key if none is given. `progress` is
// called with the fraction done; returning false stops the check.
Result<CacheCheck> verify_cache(Storage& storage, const std::string& folder,
                                const std::optional<RecordKey>& key,
                                const std::function<bool(const CacheCheck&)>& progress);

struct CacheLimits {
  std::string only;         // digests that begin so, and no others; "": all
  std::string keep;         // not those that begin so; "": none
  int64_t unused_s = -1;    // records not used for this long; -1: of any age
  int64_t size_bytes = -1;  // least recently used ones, until this much is left; -1: all
  bool dry_run = false;
};
struct CacheRemoved {
  int64_t digests = 0, files = 0, bytes = 0;
};
// Removes whole digests and, from a file store with `unused_s`, single files. kExhausted: a server
// has the folder open.
Result<CacheRemoved> shrink_cache(Storage& storage, const std::string& folder,
                                  const CacheLimits& limits, int64_t now_s);

}  // namespace banyan
