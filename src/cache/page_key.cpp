#include "cache/page_key.h"

#include <fmt/format.h>

#include <algorithm>

namespace banyan {

std::string PageKey::hex() const {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

PageKey PageKeys::root(const StateDigest& states, const PrefixNamespace& name_space) {
  hasher_.text("banyan namespace 1").digest(states.value());
  hasher_.text(name_space.adapter).text(name_space.salt).text(name_space.extra_key);
  return finish();
}

PageKey PageKeys::page(const PageKey& parent, std::span<const PrefixToken> tokens) {
  hasher_.text("page").bytes(std::as_bytes(std::span(parent.bytes)));
  hasher_.number(tokens.size()).bytes(std::as_bytes(tokens));
  return finish();
}

PageKey PageKeys::finish() {
  Digest digest = hasher_.finish();
  PageKey key;
  std::copy_n(digest.bytes.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

}  // namespace banyan
