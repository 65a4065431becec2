// Reads answers of etcd's v3 API as its HTTP/JSON gateway writes them: keys and values in base64,
// 64-bit numbers as strings, zeros left out. They may be anything; wrong ones are errors.
// Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace banyan {

struct EtcdEntry {
  std::string key, value;
};
struct EtcdListing {
  int64_t revision = 0;  // of the store, when the values were read
  std::vector<EtcdEntry> entries;
};
struct EtcdChange {
  bool removed = false;
  EtcdEntry entry;  // without a value if it was removed
};

// The answer to /v3/kv/range. kCorrupt: it has no revision.
Result<EtcdListing> read_etcd_listing(const Json& answer);
// To /v3/lease/grant: the lease's number.
Result<int64_t> read_etcd_lease(const Json& answer);
// To /v3/auth/authenticate: the user's token.
Result<std::string> read_etcd_token(const Json& answer);
// To /v3/lease/keepalive. kNotFound: the lease has expired.
Status read_etcd_renewal(const Json& answer);
// A line of /v3/watch. An error means that the watch has ended.
Result<std::vector<EtcdChange>> read_etcd_changes(std::string_view line);

}  // namespace banyan
