#include "client/etcd_answers.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/base64.h"
#include "base/error.h"

namespace banyan {
namespace {

std::string text_of(const Json& json, const char* name) {
  auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The gateway writes 64-bit numbers as strings and omits zeros.
int64_t number_of(const Json& json, const char* name) {
  if (!json.is_object()) return 0;
  auto found = json.find(name);
  if (found == json.end()) return 0;
  if (found->is_number_integer()) return found->get<int64_t>();
  int64_t number = 0;
  std::string text = found->is_string() ? found->get<std::string>() : "";
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Json member(const Json& json, const char* name) {
  return json.is_object() ? json.value(name, Json()) : Json();
}

EtcdEntry entry_of(const Json& json) {
  return {from_base64(text_of(json, "key")).value_or(""),
          from_base64(text_of(json, "value")).value_or("")};
}

}  // namespace

Result<EtcdListing> read_etcd_listing(const Json& answer) {
  EtcdListing listing{.revision = number_of(member(answer, "header"), "revision")};
  if (listing.revision == 0) return corrupt("etcd: the list of keys has no revision");
  for (const Json& entry : member(answer, "kvs")) listing.entries.push_back(entry_of(entry));
  return listing;
}

Result<int64_t> read_etcd_lease(const Json& answer) {
  int64_t lease = number_of(answer, "ID");
  if (lease == 0) return corrupt("etcd: the lease has no id");
  return lease;
}

// It becomes a header.
Result<std::string> read_etcd_token(const Json& answer) {
  constexpr size_t kBytesMax = 4096;
  std::string token = text_of(answer, "token");
  bool plain = std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!token.empty() && token.size() <= kBytesMax && plain) return token;
  return corrupt("etcd: no token for the user");
}

Status read_etcd_renewal(const Json& answer) {
  if (number_of(member(answer, "result"), "TTL") > 0) return {};
  return not_found("the lease has expired");
}

Result<std::vector<EtcdChange>> read_etcd_changes(std::string_view line) {
  Json result = member(TRY(parse_json(line, "etcd")), "result");
  if (!result.is_object()) return corrupt("it answers with an error");
  Json canceled = member(result, "canceled");
  if (!canceled.is_null() && canceled != false) return corrupt("the changes are compacted");
  std::vector<EtcdChange> changes;
  for (const Json& event : member(result, "events")) {
    changes.push_back({text_of(event, "type") == "DELETE", entry_of(member(event, "kv"))});
  }
  return changes;
}

}  // namespace banyan
