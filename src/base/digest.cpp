#include "base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "base/check.h"

namespace banyan {
namespace {

EVP_MD_CTX* context_of(const auto& pointer) {
  return static_cast<EVP_MD_CTX*>(pointer.get());
}

// Cached: looking the algorithm up by name takes longer than hashing a page.
const EVP_MD* sha256() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  CHECK(kAlgorithm != nullptr, "this OpenSSL has no SHA-256");
  return kAlgorithm;
}

}  // namespace

std::string Digest::hex() const {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

void Hasher::Free::operator()(void* context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

Hasher::Hasher() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ && EVP_DigestInit_ex2(context_of(context_), sha256(), nullptr) == 1);
}

Hasher& Hasher::bytes(std::span<const std::byte> bytes) {
  if (bytes.size() > buffer_.size() - buffered_) flush();
  if (bytes.size() > buffer_.size()) {
    CHECK(EVP_DigestUpdate(context_of(context_), bytes.data(), bytes.size()) == 1);
    return *this;
  }
  std::ranges::copy(bytes, buffer_.begin() + static_cast<ptrdiff_t>(buffered_));
  buffered_ += bytes.size();
  return *this;
}

void Hasher::flush() {
  CHECK(EVP_DigestUpdate(context_of(context_), buffer_.data(), buffered_) == 1);
  buffered_ = 0;
}

Hasher& Hasher::number(uint64_t value) {
  std::array<std::byte, 8> little;
  for (size_t i = 0; i < little.size(); ++i) little[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes(little);
}

Hasher& Hasher::text(std::string_view text) {
  return number(text.size()).bytes(std::as_bytes(std::span(text)));
}

Hasher& Hasher::digest(const Digest& digest) {
  return bytes(std::as_bytes(std::span(digest.bytes)));
}

Digest Hasher::finish() {
  flush();
  Digest digest;
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(context_of(context_), digest.bytes.data(), &length) == 1 &&
        length == digest.bytes.size());
  CHECK(EVP_DigestInit_ex2(context_of(context_), sha256(), nullptr) == 1);
  return digest;
}

}  // namespace banyan
