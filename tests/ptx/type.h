// The types of PTX and how text names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace banyan::ptx {

enum class Kind : uint8_t { kBits, kUnsigned, kSigned, kFloat, kBFloat, kPredicate };

struct Type {
  Kind kind = Kind::kBits;
  uint32_t bytes = 0;  // 0 of predicates

  bool operator==(const Type&) const = default;
  bool is_float() const { return kind == Kind::kFloat || kind == Kind::kBFloat; }
};

inline constexpr Type kPredicateType{Kind::kPredicate, 0};
inline constexpr Type kB16{Kind::kBits, 2}, kB32{Kind::kBits, 4}, kB64{Kind::kBits, 8};
inline constexpr Type kU32{Kind::kUnsigned, 4};

// "u32", "f64", "pred", ...; nullopt of anything else.
inline std::optional<Type> parse_type(std::string_view text) {
  if (text == "pred") return kPredicateType;
  if (text == "bf16") return Type{Kind::kBFloat, 2};
  if (text.size() < 2) return std::nullopt;
  std::string_view bits = text.substr(1);
  uint32_t bytes = bits == "8" ? 1 : bits == "16" ? 2 : bits == "32" ? 4 : bits == "64" ? 8 : 0;
  if (bytes == 0) return std::nullopt;
  if (text[0] == 'b') return Type{Kind::kBits, bytes};
  if (text[0] == 'u') return Type{Kind::kUnsigned, bytes};
  if (text[0] == 's') return Type{Kind::kSigned, bytes};
  if (text[0] == 'f' && bytes > 1) return Type{Kind::kFloat, bytes};
  return std::nullopt;
}

}  // namespace banyan::ptx
