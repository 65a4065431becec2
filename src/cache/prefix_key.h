// What makes two prefixes the same: a namespace (whatever changes a state without being a token:
// the model, an adapter, a tenant's salt) and one key per position. A token's key is its id; an
// image placeholder's key will come from the image's content.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace banyan {

struct PrefixNamespace {
  std::string model_fingerprint;
  std::string adapter;
  std::string salt;
  bool operator==(const PrefixNamespace&) const = default;
};

using PrefixToken = uint64_t;

struct PrefixKey {
  PrefixNamespace name_space;
  std::vector<PrefixToken> tokens;
  bool operator==(const PrefixKey&) const = default;
};

}  // namespace banyan
