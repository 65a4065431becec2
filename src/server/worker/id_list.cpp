#include "server/worker/id_list.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace banyan {

static_assert(std::endian::native == std::endian::little);

void append_ids(std::span<const TokenId> ids, std::string& out) {
  auto count = static_cast<uint32_t>(ids.size());
  out.append(reinterpret_cast<const char*>(&count), sizeof count);
  out.append(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
}

Result<std::vector<TokenId>> take_ids(std::string_view& bytes, std::string_view name) {
  uint32_t count = 0;
  if (bytes.size() < sizeof count) {
    return invalid_argument("{}: a list of token ids is expected", name);
  }
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes.remove_prefix(sizeof count);
  if (count > bytes.size() / sizeof(TokenId)) {
    return invalid_argument("{}: {} token ids are expected, and {} bytes are left", name, count,
                            bytes.size());
  }
  std::vector<TokenId> ids(count);
  size_t size = count * sizeof(TokenId);
  if (count > 0) std::memcpy(ids.data(), bytes.data(), size);
  bytes.remove_prefix(size);
  return ids;
}

}  // namespace banyan
