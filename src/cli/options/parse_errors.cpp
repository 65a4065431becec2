#include "cli/options/parse_errors.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/quote.h"
#include "cli/options/checks.h"

namespace banyan::cli {
namespace {

// Includes options that --help does not list.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_option(const std::string& word, const CLI::App& app) {
  std::string name = word.substr(0, word.find('='));
  return fmt::format("{} is not an option of `{}`{}", quote(name), app.get_name(),
                     did_you_mean(name, option_names(app)));
}

std::string unknown_key(std::string_view key, const CLI::App& app) {
  std::string name(key.substr(key.rfind('.') == key.npos ? 0 : key.rfind('.') + 1));
  std::string near = nearest(name, option_names(app));
  near.erase(0, std::min(near.find_first_not_of('-'), near.size()));
  return fmt::format("--config: {} is not an option of `{}`{}", quote(name), app.get_name(),
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

// The name that CLI11 puts before `separator`; it leaves out those of hidden options.
std::string name_before(std::string_view text, std::string_view separator) {
  std::string name(text.substr(0, std::min(text.find(separator), text.size())));
  return name.empty() ? "an option" : name;
}

std::string mismatch(std::string_view text) {
  std::string name = name_before(text, ":");
  if (text.find(" missing") != text.npos || text.find("At least") != text.npos) {
    return name + " needs a value";
  }
  if (text.find("At Most") != text.npos) return name + " is given more than once";
  if (text.starts_with("Expected")) {
    size_t at = text.find(" to ");
    if (at != text.npos) return name_before(text.substr(at + 4), ",") + " is given more than once";
  }
  return name_before(text, " was given") + " takes no value";
}

std::string conversion(std::string_view text) {
  constexpr std::string_view kPrefix = "Could not convert: ";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  size_t at = text.find(" = ");
  if (at == text.npos) return std::string(text);
  return fmt::format("{}: {} is not a number in the allowed range", text.substr(0, at),
                     quote(text.substr(at + 3)));
}

}  // namespace

std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  std::string text = error.what();
  std::vector<std::string> unexpected = app.remaining();
  for (const std::string& word : unexpected) {
    if (word.size() > 1 && word.starts_with('-') && word != "--") return unknown_option(word, app);
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
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return mismatch(text);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return conversion(text);
  return text;
}

}  // namespace banyan::cli
