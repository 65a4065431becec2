#include "grammar/run/token_slices.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "grammar/regex/regex.h"

namespace banyan {
namespace {

std::shared_ptr<const Dfa> dfa_of_slice(std::string_view pattern) {
  Budget budget({.compile_s = 1e6});
  auto dfa = dfa_of_regex(pattern, budget);
  CHECK(dfa.has_value(), "{}", dfa.error().message);
  return std::make_shared<const Dfa>(*std::move(dfa));
}

// Walks a DFA and a slice together. A pair is one state of each.
class SliceFinder {
 public:
  SliceFinder(const Dfa& dfa, const Dfa& texts, Budget& budget)
      : dfa_(dfa), texts_(texts), budget_(budget) {
    moves_.resize(texts.states());
    leaving_.assign(texts.states(), std::vector<uint8_t>(dfa.classes(), 0));
    for (uint32_t p = 1; p < texts.states(); ++p) {
      for (int b = 0; b < 256; ++b) {
        auto byte = static_cast<uint8_t>(b);
        uint32_t to = texts.step(p, byte);
        if (to == Dfa::kDead) {
          leaving_[p][dfa.class_of(byte)] |= static_cast<uint8_t>(1u << byte_group(byte));
        } else {
          moves_[p].emplace_back(dfa.class_of(byte), to);
        }
      }
      std::sort(moves_[p].begin(), moves_[p].end());
      moves_[p].erase(std::unique(moves_[p].begin(), moves_[p].end()), moves_[p].end());
    }
  }

  Status run(uint8_t number, DfaSlices& out) {
    for (uint32_t s = 1; s < dfa_.states(); ++s) {
      if (out.by_state[s].number == 0 && goes_on(s, texts_.start())) find(s, texts_.start());
    }
    if (pairs_.empty()) return {};
    TRY(explore());
    TRY(measure());
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const Pair& pair = pairs_[i];
      if (pair.length > 0) out.groups[number - 1u] |= groups_of(pair);
      DfaSlices::Slice& slice = out.by_state[pair.state];
      bool own = pair.texts == texts_.start() && pair.length >= kSliceBytesMax;
      if (own && slice.number == 0) slice = {number, pair.length == kEndless};
    }
    return {};
  }

 private:
  static constexpr uint32_t kEndless = UINT32_MAX;
  struct Pair {
    uint32_t state = 0, texts = 0;
    uint32_t length = kEndless;  // number of bytes that any string of the slice can surely continue
    uint32_t next = 0;           // index of its first successor in next_
  };

  bool goes_on(uint32_t state, uint32_t texts) const {
    return std::ranges::all_of(moves_[texts], [&](const auto& move) {
      return dfa_.step_class(state, move.first) != Dfa::kDead;
    });
  }

  uint32_t find(uint32_t state, uint32_t texts) {
    uint64_t key = uint64_t{state} << 32 | texts;
    auto [it, is_new] = index_.emplace(key, static_cast<uint32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({state, texts});
    return it->second;
  }

  // Adds all pairs reachable from the known ones.
  Status explore() {
    for (size_t i = 0; i < pairs_.size(); ++i) {
      Pair pair = pairs_[i];
      TRY(budget_.spend("looking for slices of tokens", moves_[pair.texts].size()));
      pairs_[i].next = static_cast<uint32_t>(next_.size());
      if (!goes_on(pair.state, pair.texts)) {
        pairs_[i].length = 0;
        continue;
      }
      for (auto [c, to] : moves_[pair.texts]) {
        next_.push_back(find(dfa_.step_class(pair.state, c), to));
      }
    }
    return {};
  }

  Status measure() {
    bool changed = true;
    while (changed) {
      changed = false;
      TRY(budget_.spend("looking for slices of tokens", next_.size()));
      for (size_t i = pairs_.size(); i-- > 0;) {
        Pair& pair = pairs_[i];
        size_t end = i + 1 < pairs_.size() ? pairs_[i + 1].next : next_.size();
        for (size_t k = pair.next; k < end; ++k) {
          uint32_t rest = pairs_[next_[k]].length;
          if (rest == kEndless) continue;
          // Lengths past the longest string considered are equivalent.
          uint32_t length = std::min(rest + 1, kSliceBytesMax);
          if (length >= pair.length) continue;
          pair.length = length;
          changed = true;
        }
      }
    }
    return {};
  }

  uint8_t groups_of(const Pair& pair) const {
    uint8_t groups = 0;
    for (uint32_t c = 0; c < dfa_.classes(); ++c) {
      if (dfa_.step_class(pair.state, c) != Dfa::kDead) groups |= leaving_[pair.texts][c];
    }
    return groups;
  }

  const Dfa& dfa_;
  const Dfa& texts_;
  Budget& budget_;
  // By state of the slice: classes of the DFA and their targets in the slice, and, by class, the
  // groups of bytes that leave the slice.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> moves_;
  std::vector<std::vector<uint8_t>> leaving_;
  std::vector<Pair> pairs_;
  std::vector<uint32_t> next_;
  std::unordered_map<uint64_t, uint32_t> index_;
};

}  // namespace

const std::vector<std::shared_ptr<const Dfa>>& token_slices() {
  // Excludes the line separators, which ECMAScript's dot does not match. Spaces are ECMAScript's.
  static const std::vector<std::shared_ptr<const Dfa>> kSlices = {
      dfa_of_slice(R"re([^\x00-\x1f"\\\x{2028}\x{2029}]*)re"),
      dfa_of_slice(R"re([a-zA-Z0-9 \x{80}-\x{2027}\x{202a}-\x{10ffff}]*)re"),
      dfa_of_slice(R"re([^\x00-\x20"\\\x{80}-\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029})re"
                   R"re(\x{202f}\x{205f}\x{3000}\x{feff}]*)re"),
      dfa_of_slice("[a-zA-Z0-9]*")};
  return kSlices;
}

size_t byte_group(uint8_t byte) {
  if (byte < 0x20) return 0;
  if (byte == '"') return 1;
  if (byte == '\\') return 2;
  if (byte == ' ') return 3;
  return byte < 0x80 ? 4 : 5;
}

Result<DfaSlices> DfaSlices::of(const Dfa& dfa, Budget& budget) {
  DfaSlices found;
  const auto& slices = token_slices();
  found.by_state.resize(dfa.states());
  found.groups.resize(slices.size(), 0);
  for (size_t i = 0; i < slices.size(); ++i) {
    TRY(budget.spend("looking for slices of tokens", size_t{slices[i]->states()} * 256));
    TRY(SliceFinder(dfa, *slices[i], budget).run(static_cast<uint8_t>(i + 1), found));
  }
  bool any = std::ranges::any_of(found.by_state, [](const Slice& s) { return s.number != 0; });
  if (!any) found.by_state.clear();
  return found;
}

}  // namespace banyan
