#include "unicode/unicode.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <map>

namespace banyan::unicode {
namespace {

struct Range {
  char32_t first, last;
};

constexpr Range kHanRanges[] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF}};
constexpr Range kSpaceRanges[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
// Alphabetic non-letters, and the joiners.
constexpr Range kOtherWordRanges[] = {
    {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Characters that decompose or combine but are newer than the reference's Unicode version (about
// 9), which leaves them unchanged.
constexpr Range kNotNormalizedRanges[] = {
    {0x7FD, 0x7FD},     {0x897, 0x897},     {0x898, 0x89F},     {0x8CA, 0x8D3},
    {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},
    {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},
    {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x105C9, 0x105C9},
    {0x105E4, 0x105E4}, {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
    {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10EFC, 0x10EFC},
    {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x11383, 0x11383}, {0x11385, 0x11385}, {0x1138E, 0x1138E},
    {0x11391, 0x11391}, {0x113C5, 0x113C5}, {0x113C7, 0x113C8}, {0x113CE, 0x113D0},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x11935, 0x11935},
    {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16121, 0x16128},
    {0x1612F, 0x1612F}, {0x16D68, 0x16D6A}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

uint16_t classes_of(int category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
      return kUpper | kWord;
    case UTF8PROC_CATEGORY_LL:
      return kLower | kWord;
    case UTF8PROC_CATEGORY_LT:
      return kTitle | kWord;
    case UTF8PROC_CATEGORY_LM:
      return kModifier | kWord;
    case UTF8PROC_CATEGORY_LO:
      return kOtherLetter | kWord;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark | kWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWord;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunctuation | kWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return 0;
  }
}

// True if text may be cut before this character and both parts normalized to NFC separately, with
// the character unchanged. That is a starter that neither decomposes nor is the second part of a
// pair.
bool is_nfc_inert(char32_t code) {
  constexpr int kSecondOfPair = 0x8000;  // utf8proc's mark in comb_index
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  if (property->combining_class != 0 || property->comp_exclusion) return false;
  if (property->comb_index != UINT16_MAX && property->comb_index >= kSecondOfPair) return false;
  // Hangul letters compose by arithmetic; U+11A7 does not, though utf8proc 2.8 swallows it.
  if (code >= 0x1100 && code <= 0x11FF) return code == 0x11A7;
  if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) return true;
  utf8proc_uint8_t* composed = nullptr;
  std::string text;
  append(text, code);
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const bool same = size == static_cast<utf8proc_ssize_t>(text.size()) &&
                    std::equal(text.begin(), text.end(), reinterpret_cast<char*>(composed));
  free(composed);
  return same;
}

template <size_t N>
void add(std::vector<uint16_t>& all, const Range (&ranges)[N], uint16_t bits) {
  for (const Range& range : ranges) {
    for (char32_t code = range.first; code <= range.last; ++code) all[code] |= bits;
  }
}

std::vector<uint16_t> all_classes() {
  std::vector<uint16_t> all(0x110000);
  for (char32_t code = 0; code < all.size(); ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    all[code] = classes_of(utf8proc_category(static_cast<utf8proc_int32_t>(code)));
    if (is_nfc_inert(code)) all[code] |= kNfcInert;
  }
  for (const Addition& range : additions()) {
    for (char32_t code = range.first; code <= range.last; ++code) {
      all[code] = classes_of(range.category) | (all[code] & kNfcInert);
    }
  }
  add(all, kHanRanges, kHan);
  add(all, kNotNormalizedRanges, kNfcInert | kNotNormalized);
  add(all, kSpaceRanges, kSpace);
  add(all, kOtherWordRanges, kWord);
  all['\r'] |= kNewline;
  all['\n'] |= kNewline;
  return all;
}

}  // namespace

ClassTable::ClassTable() {
  const std::vector<uint16_t> all = all_classes();
  std::map<std::vector<uint16_t>, uint16_t> seen;
  for (size_t start = 0; start < all.size(); start += 256) {
    std::vector<uint16_t> block(all.begin() + start, all.begin() + start + 256);
    auto [found, fresh] = seen.try_emplace(block, static_cast<uint16_t>(seen.size()));
    if (fresh) classes_.insert(classes_.end(), block.begin(), block.end());
    blocks_.push_back(found->second);
  }
}

const ClassTable& classes() {
  static const ClassTable table;
  return table;
}

std::string_view category_name(int category) {
  // In the order of utf8proc_category_t.
  constexpr std::string_view kNames[] = {
      "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
      "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  return kNames[category];
}

void append(std::string& text, char32_t code) {
  auto byte = [&](char32_t value) { text.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f));
  }
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  size_t copied = 0;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, copied)) {
    replaced.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  return replaced.append(text, copied);
}

size_t character_size(std::string_view bytes, size_t& invalid_size) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  invalid_size = 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  // The range of the second byte excludes overlong forms, surrogates and code points past U+10FFFF.
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return invalid_size = 0;
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xbf)) {
      invalid_size = i;
      return 0;
    }
  }
  return size;
}

std::optional<size_t> first_invalid(std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) return std::nullopt;
  size_t at = 0, invalid = 0;
  while (at < text.size()) {
    const size_t size = character_size(text.substr(at), invalid);
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

}  // namespace banyan::unicode
