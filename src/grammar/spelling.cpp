#include "grammar/spelling.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "grammar/run/parser.h"

namespace banyan {
namespace {

constexpr int kUtf8Bytes = 0xf5;  // UTF-8 has no byte from here on

bool continues(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

// Length in bytes of the character that starts with `byte`.
size_t character_bytes(char byte) {
  auto first = static_cast<uint8_t>(byte);
  return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// The nodes that can reach their routine's end through terminals that tokens can spell. Iterates to
// a fixed point; each pass costs the number of nodes.
std::vector<bool> writable_nodes(const Automaton& a,
                                 const std::vector<std::optional<std::string>>& unspelled) {
  std::vector<bool> writable(a.nodes());
  auto leads_on = [&](const AutomatonNode& n) -> bool {
    switch (n.kind) {
      case NodeKind::kReturn:
        return true;
      case NodeKind::kTerminal:
        return writable[n.next] && !unspelled[n.index];
      case NodeKind::kSplit:
        return writable[n.next] || writable[n.index];
      case NodeKind::kCall:
        return writable[n.next] && writable[a.routine(n.index).entry];
      case NodeKind::kLoop:
        break;
    }
    const Loop& loop = a.loop(n.index);
    return writable[n.next] && (a.skippable(loop) || writable[a.routine(loop.routine).entry]);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < a.nodes(); ++i) {
      if (writable[i] || !leads_on(a.node(i))) continue;
      writable[i] = changed = true;
    }
  }
  return writable;
}

// Searches token sequences from the start of the text, depth first to reach an end soon.
class TokenSearch {
 public:
  static constexpr int kStepsMax = 50'000;
  static constexpr size_t kTextsMax = 4'096;

  TokenSearch(const std::shared_ptr<const Automaton>& automaton, const TokenTrie& trie)
      : parser_(automaton), trie_(trie), states_(trie.depth_max() + 1) {}

  // True if some token sequence is a complete text, or if the search hits its limit.
  bool finds_text() {
    add(parser_.start(), "");
    while (!open_.empty()) {
      auto [state, text] = std::move(open_.back());
      open_.pop_back();
      if (state.complete || steps_ > kStepsMax || seen_.size() > kTextsMax) return true;
      if (text.size() >= longest_.second.size()) longest_ = {state, text};
      follow(std::move(state), text);
    }
    return false;
  }
  // The error for the longest prefix that tokens can spell.
  Error error() {
    ParseState state = longest_.first;
    std::string forced;
    parser_.forced(state, forced, 4);
    forced.resize(std::min(forced.size(), forced.empty() ? 0 : character_bytes(forced[0])));
    std::string what = forced.empty() ? "what the grammar requires" : quote(forced);
    const std::string& begun = longest_.second;
    std::string place = begun.empty() ? "at the beginning" : "after " + quote(begun);
    return invalid_argument("the model's tokens cannot spell {} {}", what, place).error();
  }

 private:
  void add(ParseState state, std::string text) {
    if (!seen_.insert(parser_.hash(state)).second) return;
    open_.emplace_back(std::move(state), std::move(text));
  }

  void follow(ParseState from, const std::string& begun) {
    states_[0] = std::move(from);
    std::string text = begun;
    for (size_t i = 0; i < trie_.size() && steps_ <= kStepsMax; ++steps_) {
      const TokenTrie::Node& node = trie_[i];
      parser_.step(states_[node.depth - 1u], node.byte, states_[node.depth]);
      text.resize(begun.size() + node.depth - 1u);
      text.push_back(static_cast<char>(node.byte));
      if (states_[node.depth].dead()) {
        i = node.end;
        continue;
      }
      if (node.marks & TokenTrie::kHasValues) add(states_[node.depth], text);
      ++i;
    }
  }

  Parser parser_;
  const TokenTrie& trie_;
  std::vector<ParseState> states_;  // by depth in the trie
  std::vector<std::pair<ParseState, std::string>> open_;
  std::unordered_set<uint64_t> seen_;
  std::pair<ParseState, std::string> longest_;
  int steps_ = 0;
};

}  // namespace

Spelling::Spelling(std::shared_ptr<const TokenVocabulary> vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  for (TokenId id = 0; id < vocabulary_->mask_tokens(); ++id) {
    std::string_view bytes = vocabulary_->bytes_of(id);
    for (char byte : bytes) within_.set(static_cast<uint8_t>(byte));
    if (bytes.size() == 1) alone_.set(static_cast<uint8_t>(bytes[0]));
  }
  all_bytes_ = true;
  for (int byte = 0; byte < kUtf8Bytes; ++byte) {
    bool in_text = byte != 0xc0 && byte != 0xc1;
    all_bytes_ = all_bytes_ && (alone_.test(byte) || !in_text);
  }
  if (all_bytes_) return;
  for (TokenId id = 0; id < vocabulary_->mask_tokens(); ++id) {
    add_characters(vocabulary_->bytes_of(id));
  }
}

void Spelling::add_characters(std::string_view token) {
  for (size_t i = 0; i < token.size();) {
    size_t count = character_bytes(token[i]);
    std::string_view character = token.substr(i, count);
    bool whole = character.size() == count && !continues(character[0]) &&
                 std::ranges::all_of(character.substr(1), continues);
    if (whole) {
      characters_.emplace(character);
    } else {
      character = character.substr(0, 1);
      pieces_.set(static_cast<uint8_t>(character[0]));
    }
    i += character.size();
  }
}

std::optional<std::string> Spelling::unspelled(std::string_view text) const {
  for (size_t i = 0; i < text.size();) {
    if (text[i] == kSpecialBegin) {
      size_t end = text.find(kSpecialEnd, i);
      std::string_view name = text.substr(i + 1, end == text.npos ? end : end - i - 1);
      if (vocabulary_->find_special(name) < 0) return std::string(name);
      i = end == text.npos ? text.size() : end + 1;
      continue;
    }
    std::string_view character = text.substr(i, character_bytes(text[i]));
    bool spelled = characters_.contains(std::string(character)) ||
                   std::ranges::all_of(character, [&](char byte) {
                     auto index = static_cast<uint8_t>(byte);
                     return alone_.test(index) || pieces_.test(index);
                   });
    if (!spelled) return std::string(character);
    i += character.size();
  }
  return std::nullopt;
}

// Breadth first: the shortest string overall, and the shortest whose bytes all occur in tokens.
std::optional<std::string> Spelling::unspelled(const Dfa& dfa) const {
  auto shortest = [&](const std::bitset<256>& bytes) -> std::optional<std::string> {
    std::vector<std::pair<uint32_t, std::string>> open = {{dfa.start(), ""}};
    std::vector<bool> seen(dfa.states());
    seen[dfa.start()] = true;
    for (size_t i = 0; i < open.size(); ++i) {
      auto [state, text] = open[i];
      if (dfa.accepting(state)) return text;
      for (size_t byte = 0; byte < bytes.size(); ++byte) {
        uint32_t next = dfa.step(state, static_cast<uint8_t>(byte));
        if (!bytes.test(byte) || next == Dfa::kDead || seen[next]) continue;
        seen[next] = true;
        open.emplace_back(next, text + static_cast<char>(byte));
      }
    }
    return std::nullopt;
  };
  if (shortest(within_)) return std::nullopt;
  std::string text = shortest(std::bitset<256>().set()).value_or("");
  return unspelled(std::string_view(text)).value_or(text);
}

std::vector<std::optional<std::string>> Spelling::unspelled_terminals(const Automaton& a) const {
  std::vector<std::optional<std::string>> unspelled_parts(a.terminals());
  for (uint32_t i = 0; i < a.terminals(); ++i) {
    const Terminal& t = a.terminal(i);
    if (t.text.empty() && all_bytes_) continue;
    bool special = t.text.find(kSpecialBegin) != t.text.npos;
    if (all_bytes_ && !special) continue;
    unspelled_parts[i] = t.text.empty() ? unspelled(*t.dfa) : unspelled(t.text);
  }
  return unspelled_parts;
}

Status Spelling::check(const std::shared_ptr<const Automaton>& automaton) const {
  std::vector<std::optional<std::string>> parts = unspelled_terminals(*automaton);
  auto first = std::ranges::find_if(parts, [](const auto& part) { return part.has_value(); });
  if (first != parts.end() &&
      !writable_nodes(*automaton, parts)[automaton->routine(automaton->root()).entry]) {
    return invalid_argument("the grammar requires {}, which the model's tokens cannot spell",
                            quote(**first));
  }
  return all_bytes_ ? Status() : follow_tokens(automaton);
}

Status Spelling::follow_tokens(const std::shared_ptr<const Automaton>& automaton) const {
  TokenSearch search(automaton, vocabulary_->trie());
  if (search.finds_text()) return {};
  return std::unexpected(search.error());
}

}  // namespace banyan
