#include "cli/options/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/quote.h"
#include "tensor/float_names.h"

namespace banyan::cli {
namespace {

template <class T>
bool parse_whole(const std::string& text, T& value) {
  const char* end_of_text = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  return error == std::errc() && end == end_of_text;
}

std::string plain(std::string_view word) {
  std::string text(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return text;
}

// Damerau-Levenshtein distance: letters to change, insert, delete or swap with a neighbour.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, changed});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

CLI::Validator whole_between(int64_t min, int64_t max) {
  return {[min, max](std::string& text) -> std::string {
            int64_t value = 0;
            if (parse_whole(text, value) && value >= min && value <= max) return "";
            return fmt::format("{} is not a whole number from {} to {}", quote(text), min, max);
          },
          ""};
}

CLI::Validator number_between(double min, double max) {
  return {[min, max](std::string& text) -> std::string {
            double value = 0;
            if (parse_whole(text, value) && value >= min && value <= max) return "";
            return fmt::format("{} is not a number from {} to {}", quote(text), min, max);
          },
          ""};
}

CLI::Validator with_multiples() {
  return {[](std::string& text) -> std::string {
            constexpr std::string_view kLetters = "kmg";
            if (text.size() < 2) return "";
            auto letter = static_cast<unsigned char>(text.back());
            auto power = kLetters.find(static_cast<char>(std::tolower(letter)));
            double value = 0;
            if (power == kLetters.npos || !parse_whole(text.substr(0, text.size() - 1), value)) {
              return "";
            }
            double base = std::isupper(letter) != 0 ? 1024 : 1000;
            value *= std::pow(base, static_cast<double>(power + 1));
            if (value != std::floor(value) || std::fabs(value) > 0x1p53) {
              return fmt::format("{} is not a whole number", quote(text));
            }
            text = fmt::format("{:.0f}", value);
            return "";
          },
          ""};
}

void need_number(const std::string& option, std::string text, std::vector<std::string> words) {
  if (std::ranges::find(words, text) != words.end()) return;
  std::string given = text, error = with_multiples()(text);
  double value = 0;
  if (error.empty() && parse_whole(text, value)) return;
  throw CLI::ValidationError(option, error.empty() ? not_a_number(given) : error);
}

std::string not_a_number(const std::string& text) {
  double value = 0;
  if (!parse_whole(text, value)) return quote(text) + " is not a number";
  if (value != std::floor(value)) return quote(text) + " is not a whole number";
  return fmt::format("{} is too {} for this option", quote(text), value < 0 ? "small" : "large");
}

CLI::Validator count_or_rest() {
  return {[](std::string& text) -> std::string {
            int64_t value = 0;
            if (parse_whole(text, value) && (value == -1 || value > 0) && value <= 1 << 20) {
              return "";
            }
            return fmt::format("{} is neither a whole number from 1 to {} nor -1 (all that fits)",
                               quote(text), 1 << 20);
          },
          ""};
}

CLI::Validator one_of(std::vector<std::string> names, std::vector<std::string> aliases) {
  std::string description = fmt::format("{{{}}}", fmt::join(names, ","));
  std::string listed = fmt::format("{}", fmt::join(names, ", "));
  auto allowed = std::move(names);
  allowed.insert(allowed.end(), aliases.begin(), aliases.end());
  return {[allowed = std::move(allowed), listed](std::string& text) -> std::string {
            std::string lower = text;
            std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
              return static_cast<char>(std::tolower(c));
            });
            for (const std::string& name : allowed) {
              if (text != name && lower != name) continue;
              text = name;
              return "";
            }
            return fmt::format("{} is not one of {}", quote(text), listed);
          },
          description};
}

void need_one_of(const std::string& option, std::string& text, std::vector<std::string> names) {
  std::string error = one_of(std::move(names))(text);
  if (!error.empty()) throw CLI::ValidationError(option, error);
}

CLI::Option* add_choice_flag(CLI::App& app, const std::string& names, std::optional<bool>& value,
                             const std::string& description) {
  return app.add_flag_function(names, [&value](int64_t count) { value = count > 0; }, description);
}

void add_hidden_choice(CLI::App& app, const std::string& name, std::vector<std::string> names,
                       std::function<void(const std::string&)> read) {
  app.add_option_function<std::string>(
         name,
         [name, names = std::move(names), read = std::move(read)](std::string value) {
           need_one_of(name, value, names);
           read(value);
         },
         "")
      ->default_str("")
      ->group("");
}

std::vector<std::string> float_aliases() {
  std::vector<std::string> names;
  for (const FloatAlias& alias : kFloatAliases) names.emplace_back(alias.name);
  return names;
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr size_t kWordMax = 64;  // longer words are not typos
  std::string wanted = plain(word);
  if (wanted.size() < 2 || wanted.size() > kWordMax) return "";
  std::string best;
  size_t best_distance = wanted.size() / 4 + 1;  // 1 for words of 2 to 3 letters, 2 for 4 to 7
  for (const std::string& name : names) {
    std::string candidate = plain(name);
    if (candidate.size() < 2) continue;
    size_t distance = edit_distance(wanted, candidate);
    if (distance > best_distance || (distance == best_distance && !best.empty())) continue;
    best_distance = distance;
    best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  std::string name = nearest(word, names);
  return name.empty() ? "" : fmt::format("; did you mean {}?", name);
}

}  // namespace banyan::cli
