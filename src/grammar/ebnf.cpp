#include "grammar/ebnf.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/quote.h"
#include "grammar/regex/codepoints.h"
#include "grammar/regex/nfa.h"
#include "grammar/regex/rules.h"
#include "grammar/run/token_vocabulary.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr uint32_t kRepeatMax = 1'000'000;

bool is_name(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
         c == '_' || c == '.';
}

class Reader {
 public:
  Reader(std::string_view text, Budget& budget) : text_(text), budget_(budget) {}

  Result<Rules> read(std::string_view root) {
    TRY(Budget::fits("the grammar (bytes)", text_.size(), budget_.limits().source_bytes_max));
    if (auto bad = unicode::first_invalid(text_)) {
      return invalid_argument("the grammar is not UTF-8 at byte {}", *bad);
    }
    skip_space();
    if (!more()) return invalid_argument("the grammar has no rules");
    while (more()) TRY(rule());
    for (const auto& [name, entry] : names_) {
      if (!entry.defined) {
        return invalid_argument("grammar, line {}: rule {} is not defined", line_of(entry.used),
                                quote(name));
      }
    }
    auto it = names_.find(std::string(root));
    if (it == names_.end()) return invalid_argument("the grammar has no rule {}", quote(root));
    rules_.root = it->second.rule;
    return std::move(rules_);
  }

 private:
  struct Name {
    RuleId rule = 0;
    bool defined = false;
    size_t used = 0;
  };

  size_t line_of(size_t at) const {
    auto end = text_.begin() + std::min(at, text_.size());
    return 1 + std::count(text_.begin(), end, '\n');
  }
  std::unexpected<Error> error(std::string_view what) const {
    return invalid_argument("grammar, line {}: {} at {}", line_of(at_), what,
                            more() ? quote(text_.substr(at_, 20)) : "the end");
  }
  bool more() const { return at_ < text_.size(); }
  bool looking_at(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!looking_at(s)) return false;
    at_ += s.size();
    return true;
  }

  void skip_space() {
    while (more()) {
      char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  std::string_view name() {
    size_t begin = at_;
    while (more() && is_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // True at a name that starts a definition.
  bool at_definition() {
    size_t at = at_;
    name();
    bool named = at_ > at;
    skip_space();
    bool defines = named && looking_at("::=");
    at_ = at;
    return defines;
  }

  Name& entry_of(std::string_view name) {
    auto [it, fresh] = names_.try_emplace(std::string(name));
    if (fresh) it->second = {rules_.add_rule(std::string(name)), false, at_};
    return it->second;
  }

  Status rule() {
    if (!at_definition()) return error("expected `name ::=`");
    std::string_view rule_name = name();
    Name& entry = entry_of(rule_name);
    if (entry.defined)
      return error(fmt::format("rule {} is defined twice, again", quote(rule_name)));
    entry.defined = true;
    RuleId rule = entry.rule;
    skip_space();
    take("::=");
    rules_.set_body(rule, TRY(alternatives(0)));
    if (more() && !at_definition()) return error("expected an expression or a rule");
    return {};
  }

  Result<ExpressionId> alternatives(int depth) {
    if (depth > budget_.limits().depth_max) return error("groups nested too deeply");
    std::vector<ExpressionId> ways;
    do {
      ways.push_back(TRY(sequence(depth)));
      skip_space();
    } while (take("|"));
    return rules_.choice(ways);
  }

  Result<ExpressionId> sequence(int depth) {
    std::vector<ExpressionId> parts;
    for (;;) {
      skip_space();
      TRY(Budget::fits("the grammar (expressions)", rules_.size(), budget_.limits().nodes_max));
      TRY(budget_.spend("reading the grammar", 16));
      if (!more() || looking_at("|") || looking_at(")") || at_definition()) break;
      ExpressionId part = TRY(atom(depth));
      parts.push_back(TRY(repeated(part)));
    }
    return rules_.sequence(parts);
  }

  Result<ExpressionId> repeated(ExpressionId part) {
    for (;;) {
      size_t at = at_;
      skip_space();
      if (take("*")) {
        part = rules_.repeat(part, 0, Rules::kUnbounded);
      } else if (take("+")) {
        part = rules_.repeat(part, 1, Rules::kUnbounded);
      } else if (take("?")) {
        part = rules_.optional(part);
      } else if (take("{")) {
        part = TRY(bounded(part));
      } else {
        at_ = at;
        return part;
      }
    }
  }

  Result<ExpressionId> bounded(ExpressionId part) {
    skip_space();
    std::optional<uint32_t> low = TRY(number()), high = low;
    skip_space();
    if (take(",")) {
      skip_space();
      high = TRY(number());
      skip_space();
    } else if (!low) {
      return error("expected a number of repetitions");
    }
    if (!take("}")) return error("expected }");
    uint32_t min = low.value_or(0), max = high.value_or(Rules::kUnbounded);
    if (max < min) return error("a repetition {m,n} with m > n");
    return rules_.repeat(part, min, max);
  }

  Result<std::optional<uint32_t>> number() {
    std::optional<uint32_t> value;
    for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value.value_or(0) * 10 + static_cast<uint32_t>(text_[at_] - '0');
      if (*value > kRepeatMax) return exhausted("a repetition is beyond {}", kRepeatMax);
    }
    return value;
  }

  Result<ExpressionId> atom(int depth) {
    char c = text_[at_];
    if (c == '"' || c == '\'') return quoted();
    if (c == '[') return characters();
    if (take(".")) return characters_of(CodepointSet::all());
    if (looking_at("<[") || looking_at("!<[")) return special();
    if (c == '(') {
      if (looking_at("(?")) return error("lookahead is not supported,");
      ++at_;
      ExpressionId inner = TRY(alternatives(depth + 1));
      if (!take(")")) return error("expected )");
      return inner;
    }
    if (!is_name(c)) return error("unexpected text");
    return rules_.call(entry_of(name()).rule);
  }

  Result<ExpressionId> special() {
    return unsupported("grammar, line {}: tokens by number are not supported; write the text",
                       line_of(at_));
  }

  Result<ExpressionId> quoted() {
    char mark = text_[at_++];
    std::string text;
    while (more() && text_[at_] != mark) {
      if (text_[at_] == '\n') return error("a line break within quotes");
      unicode::append(text, TRY(character()));
    }
    if (!more()) return error("expected a closing quote");
    ++at_;
    return rules_.text(text);
  }

  Result<char32_t> character() {
    if (!take("\\")) {
      auto [code, size] = unicode::decode(text_.data() + at_);
      at_ += size;
      return code;
    }
    if (!more()) return error("a backslash before");
    char c = text_[at_++];
    constexpr std::string_view kLetters = "nrtbfav0", kMeaning{"\n\r\t\b\f\a\v\0", 8};
    if (size_t i = kLetters.find(c); i != kLetters.npos) return static_cast<char32_t>(kMeaning[i]);
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
      return error(fmt::format("unknown escape \\{} before", c));
    }
    if (digits == 0) {
      --at_;
      auto [code, size] = unicode::decode(text_.data() + at_);
      at_ += size;
      return code;
    }
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      int value = more() ? hex(text_[at_]) : -1;
      if (value < 0) return error("expected a hexadecimal digit");
      code = code * 16 + static_cast<char32_t>(value);
      if (code > kCodepointMax) return error("beyond U+10FFFF:");
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    if (surrogate) return error("surrogates are not characters:");
    return code;
  }

  static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
    return -1;
  }

  Result<ExpressionId> characters() {
    ++at_;
    bool negated = take("^");
    std::vector<CodepointSet::Range> ranges;
    while (more() && text_[at_] != ']') {
      char kind = looking_at("\\") && at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      if (std::string_view("dswDSW").contains(kind) && kind != '\0') {
        at_ += 2;
        CodepointSet set = perl_class(static_cast<char>(kind | 0x20), false);
        if (kind < 'a') set = set.complement();
        ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
        continue;
      }
      char32_t first = TRY(character()), last = first;
      if (looking_at("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = TRY(character());
      }
      if (last < first) return error("a range whose ends are swapped before");
      ranges.push_back({first, last});
    }
    if (!take("]")) return error("expected ]");
    CodepointSet set(std::move(ranges));
    return characters_of(negated ? set.complement() : set);
  }

  Result<ExpressionId> characters_of(const CodepointSet& set) {
    Nfa nfa(CharacterCoding::kUtf8, budget_);
    return rules_.dfa(TRY(nfa.determinize(nfa.characters(set, nfa.accept()))));
  }

  std::string_view text_;
  Budget& budget_;
  size_t at_ = 0;
  Rules rules_;
  std::map<std::string, Name> names_;
};

}  // namespace

Result<Rules> rules_of_ebnf(std::string_view source, std::string_view root, Budget& budget) {
  Rules rules = TRY(Reader(source, budget).read(root));
  rules.unroll_left_recursion();
  return compact(rules, budget);
}

}  // namespace banyan
