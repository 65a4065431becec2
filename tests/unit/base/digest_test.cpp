#include "base/digest.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

namespace banyan::digest_test {
namespace {

// Pieces of 1, 2, ... up to `piece_max` bytes, and again from 1.
std::string hash_in_pieces(std::string_view text, size_t piece_max) {
  Hasher hasher;
  for (size_t size = 1; !text.empty(); size = size % piece_max + 1) {
    std::string_view piece = text.substr(0, size);
    hasher.bytes(std::as_bytes(std::span(piece)));
    text.remove_prefix(piece.size());
  }
  return hasher.finish().hex();
}

TEST(Digest, IsSha256) {
  Hasher hasher;
  std::string_view text = "abc";
  hasher.bytes(std::as_bytes(std::span(text)));
  EXPECT_EQ(hasher.finish().hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hasher.finish().hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
      << "of nothing, since finish() resets";
}

TEST(Digest, DoesNotDependOnPieces) {
  for (size_t size : {1, 511, 512, 513, 5000}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 % 251);
    Hasher hasher;
    std::string whole = hasher.bytes(std::as_bytes(std::span(text))).finish().hex();
    for (size_t piece : {3, 100, 700}) EXPECT_EQ(hash_in_pieces(text, piece), whole) << size;
  }
}

}  // namespace
}  // namespace banyan::digest_test
