#include "cli/options/parse_errors.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "cli/options/checks.h"

namespace banyan::cli {
namespace {

// Options that users of other programs type, where no name is near.
constexpr std::array kForeignOptions = std::to_array<std::pair<std::string_view, const char*>>({
    {"--cors", "--cors-allow-origins"},
    {"--cors-origins", "--cors-allow-origins"},
    {"-q", "--to"},
    {"--quantization", "--to"},
});

// Includes options that --help does not list.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_key(std::string_view key, const CLI::App& app) {
  std::string name(key.substr(key.rfind('.') == key.npos ? 0 : key.rfind('.') + 1));
  std::string near = nearest(name, option_names(app));
  near.erase(0, std::min(near.find_first_not_of('-'), near.size()));
  return fmt::format("--config: {} is not an option of `{}`{}", quote(name), app.get_name(),
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

// CLI11 leaves out the names of hidden options: the first given one for which `is_it` holds.
template <class Pred>
std::string hidden_name(const CLI::App& app, Pred is_it) {
  for (const CLI::Option* option : app.get_options()) {
    bool hidden = option->get_group().empty() && !option->get_lnames().empty();
    if (hidden && option->count() > 0 && is_it(*option)) return "--" + option->get_lnames()[0];
  }
  return "an option";
}

// That whose value is in the error `text`.
std::string hidden_name_of(std::string_view text, const CLI::App& app) {
  return hidden_name(app, [&](const CLI::Option& option) {
    return std::ranges::any_of(option.results(), [&](const std::string& value) {
      return !value.empty() && text.contains(value);
    });
  });
}

// The name that CLI11 puts before `separator`.
std::string name_before(std::string_view text, std::string_view separator) {
  return std::string(text.substr(0, std::min(text.find(separator), text.size())));
}

std::string mismatch(std::string_view text, const CLI::App& app) {
  auto repeated = [&](std::string name) {
    auto twice = [](const CLI::Option& option) { return option.count() > 1; };
    return (name.empty() ? hidden_name(app, twice) : name) + " is given more than once";
  };
  std::string name = name_before(text, ":");
  if (text.contains("At Most")) return repeated(name);
  if (text.starts_with("Expected")) {
    size_t at = text.find(" to ");
    if (at != text.npos) return repeated(name_before(text.substr(at + 4), ","));
  }
  if (name.empty()) name = "an option";
  if (text.contains(" missing") || text.contains("At least")) return name + " needs a value";
  name = name_before(text, " was given");
  return (name.empty() ? "an option" : name) + " takes no value";
}

std::string conversion(std::string_view text, const CLI::App& app) {
  constexpr std::string_view kPrefix = "Could not convert: ";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  size_t at = text.find(" = ");
  if (at == text.npos) return std::string(text);
  std::string name(text.substr(0, at)), value(text.substr(at + 3));
  return (name.empty() ? hidden_name_of(value, app) : name) + ": " + not_a_number(value);
}

// "NAME is required", with the values that NAME may have.
std::string requirement(const std::string& text, const CLI::App& app) {
  const CLI::Option* option = app.get_option_no_throw(name_before(text, " is required"));
  std::string choices = option == nullptr ? "" : option->get_type_name();
  size_t begin = choices.find('{'), end = choices.find('}');
  if (begin == choices.npos || end == choices.npos) return text;
  choices = choices.substr(begin + 1, end - begin - 1);
  for (size_t comma = 0; (comma = choices.find(',', comma)) != choices.npos; comma += 2) {
    choices.insert(comma + 1, " ");
  }
  return fmt::format("{} is missing; give one of {}", option->get_name(), choices);
}

}  // namespace

std::optional<size_t> find_unknown_short_name(std::span<const std::string> words,
                                              const CLI::App& app) {
  bool needs_value = false;  // the word before
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (std::exchange(needs_value, false) || !word.starts_with('-')) continue;
    if (const CLI::Option* option = app.get_option_no_throw(word)) {
      needs_value = option->get_items_expected_min() > 0;
      continue;
    }
    std::string_view name = std::string_view(word).substr(1, word.find('=') - 1);
    bool letters = std::ranges::all_of(
        name, [](unsigned char c) { return std::isalpha(c) != 0 || c == '-' || c == '_'; });
    if (letters && name.size() > 1 && name[0] != '-') return i;
  }
  return std::nullopt;
}

std::string unknown_option(const std::string& word, const CLI::App& app,
                           const OptionOwners& owners_of) {
  std::string name = word.substr(0, word.find('='));
  std::string message = fmt::format("{} is not an option of `{}`", quote(name), app.get_name());
  for (auto [foreign, ours] : kForeignOptions) {
    bool known = name == foreign && app.get_option_no_throw(ours) != nullptr;
    if (known) return fmt::format("{}; did you mean {}?", message, ours);
  }
  std::string owners = owners_of ? owners_of(name) : "";
  if (!owners.empty()) return fmt::format("{}, but of {}", message, owners);
  std::string similar = did_you_mean(name, option_names(app));
  if (similar.empty() && word.size() > 2 && word[1] != '-') {  // llama.cpp users' -pHello
    std::string letter = word.substr(0, 2);
    const CLI::Option* option = app.get_option_no_throw(letter);
    if (option != nullptr && option->get_items_expected_min() > 0) {
      similar = fmt::format("; write a space before the value: {} {}", letter, word.substr(2));
    }
  }
  return message + similar;
}

std::string explain(const CLI::ParseError& error, const CLI::App& app,
                    const OptionOwners& owners_of) {
  std::string text = error.what();
  std::vector<std::string> unexpected = app.remaining();
  for (const std::string& word : unexpected) {
    if (word.size() > 1 && word.starts_with('-') && word != "--") {
      return unknown_option(word, app, owners_of);
    }
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return fmt::format("unexpected argument {}", quote(unexpected.front()));
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
    constexpr std::string_view kUnknown = "INI was not able to parse ";
    return text.starts_with(kUnknown) ? unknown_key(text.substr(kUnknown.size()), app) : text;
  }
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) {
    return fmt::format("--config {}: cannot read it", name_before(text, " was not readable"));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return mismatch(text, app);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return conversion(text, app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return requirement(text, app);
  if (text.starts_with(": ")) return hidden_name_of(text, app) + text;
  return text;
}

}  // namespace banyan::cli
