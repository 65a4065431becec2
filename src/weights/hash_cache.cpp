#include "weights/hash_cache.h"

#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "weights/block_hashes.h"

namespace banyan {
namespace {

constexpr int64_t kSettledNs = 2'000'000'000;
constexpr size_t kDigestBytes = sizeof(Digest::bytes);

std::string absolute(const std::string& path) {
  std::error_code code;
  std::filesystem::path full = std::filesystem::weakly_canonical(path, code);
  return code ? path : full.string();
}

// The start of an entry: everything that must match for its hashes to be valid.
Digest key_of(const std::string& path, const FileIdentity& file, size_t count) {
  Hasher hasher;
  hasher.text("banyan block hashes 1").number(kHashBlockBytes).text(absolute(path));
  hasher.number(file.inode).number(file.bytes);
  hasher.number(static_cast<uint64_t>(file.modified_ns));
  hasher.number(static_cast<uint64_t>(file.changed_ns));
  return hasher.number(count).finish();
}

Digest checksum(std::string_view bytes) {
  return Hasher().text(bytes).finish();
}

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), kDigestBytes};
}

}  // namespace

std::string HashCache::entry_path(const std::string& path) const {
  return folder_ + "/weights/" + Hasher().text(absolute(path)).finish().hex();
}

bool HashCache::find(const std::string& path, const FileIdentity& identity,
                     std::span<Digest> hashes) const {
  if (folder_.empty()) return false;
  Result<std::string> text = read_file(entry_path(path));
  if (!text || text->size() != (hashes.size() + 2) * kDigestBytes) return false;
  std::string_view rest = *text;
  std::string_view sum = rest.substr(rest.size() - kDigestBytes);
  rest.remove_suffix(kDigestBytes);
  if (!rest.starts_with(view(key_of(path, identity, hashes.size())))) return false;
  if (sum != view(checksum(rest))) return false;
  for (Digest& hash : hashes) {
    rest.remove_prefix(kDigestBytes);
    std::memcpy(hash.bytes.data(), rest.data(), kDigestBytes);
  }
  return true;
}

void HashCache::keep(const std::string& path, const FileIdentity& identity,
                     std::span<const Digest> hashes) const {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  if (folder_.empty() || identity.modified_ns > now_ns - kSettledNs) return;
  std::string entry(view(key_of(path, identity, hashes.size())));
  for (const Digest& hash : hashes) entry += view(hash);
  entry += view(checksum(entry));
  if (Status kept = replace_file(entry_path(path), entry); !kept) {
    spdlog::debug("hashes of {} are not kept: {}", path, kept.error().message);
  }
}

}  // namespace banyan
