#include "eval/answers.h"

#include <algorithm>

namespace banyan {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool digit_at(std::string_view text, size_t at) {
  return at < text.size() && is_digit(text[at]);
}

// Whether text[at] is a comma followed by a group of exactly three digits.
bool thousands_at(std::string_view text, size_t at) {
  return at < text.size() && text[at] == ',' && digit_at(text, at + 1) && digit_at(text, at + 2) &&
         digit_at(text, at + 3) && !digit_at(text, at + 4);
}

// A minus sign rather than an operator: "-5", "-$5" and U+2212, but not "10-5".
bool is_negative(std::string_view before) {
  constexpr std::string_view kMinus = "\u2212";
  if (before.ends_with('$')) before.remove_suffix(1);
  if (before.ends_with('-')) {
    before.remove_suffix(1);
  } else if (before.ends_with(kMinus)) {
    before.remove_suffix(kMinus.size());
  } else {
    return false;
  }
  return before.empty() || (!is_word(before.back()) && before.back() != ')');
}

std::string spell(bool negative, std::string whole, std::string fraction) {
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (whole.empty()) whole = "0";
  if (!fraction.empty()) whole += "." + fraction;
  return negative && whole != "0" ? "-" + whole : whole;
}

bool letter_at(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= 'A' && text[at] <= 'J' &&
         (at + 1 == text.size() || !is_word(text[at + 1]));
}

std::string letter(char c) {
  return std::string(1, c);
}

std::optional<std::string> answer_is(std::string_view text) {
  constexpr std::string_view kPhrase = "answer is ";
  for (size_t at = text.find(kPhrase); at != text.npos; at = text.find(kPhrase, at + 1)) {
    size_t place = at + kPhrase.size();
    if (place < text.size() && text[place] == '(') ++place;
    if (letter_at(text, place)) return letter(text[place]);
  }
  return std::nullopt;
}

std::optional<std::string> answer_colon(std::string_view text) {
  std::optional<std::string> found;
  size_t line = 0;  // end of the line that contains `found`
  for (size_t at = text.find("nswer:"); at != text.npos; at = text.find("nswer:", at + 1)) {
    if (found && at > line) break;
    if (at == 0 || (text[at - 1] != 'a' && text[at - 1] != 'A')) continue;
    size_t place = text.find_first_not_of(" \t\r\n", at + 6);
    if (place == text.npos || !letter_at(text, place)) continue;
    found = letter(text[place]);
    line = text.find('\n', at);
  }
  return found;
}

std::optional<std::string> lone_letter(std::string_view text) {
  for (size_t at = text.size(); at-- > 0;) {
    if (letter_at(text, at) && (at == 0 || !is_word(text[at - 1]))) return letter(text[at]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> last_number(std::string_view text) {
  std::optional<std::string> found;
  for (size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    // ".5" is a fraction unless the point ends a word.
    bool bare = at > 0 && text[at - 1] == '.' && (at == 1 || !is_word(text[at - 2]));
    bool negative = is_negative(text.substr(0, bare ? at - 1 : at));
    std::string whole, fraction;
    if (!bare) {
      for (; digit_at(text, at) || thousands_at(text, at); ++at) {
        if (text[at] != ',') whole += text[at];
      }
      if (at < text.size() && text[at] == '.' && digit_at(text, at + 1)) ++at;
    }
    bool has_fraction = bare || (at > 0 && text[at - 1] == '.');
    for (; has_fraction && digit_at(text, at); ++at) fraction += text[at];
    found = spell(negative, std::move(whole), std::move(fraction));
  }
  return found;
}

std::optional<std::string> chosen_letter(std::string_view text) {
  if (auto found = answer_is(text)) return found;
  if (auto found = answer_colon(text)) return found;
  return lone_letter(text);
}

}  // namespace banyan
