#include "cli/options/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace banyan::cli {
namespace {

// Splits "NAME:{auto,bf16}" into the value's name and choices. Of "N:INT in [0 - 8]" only the name
// is used.
void read_type(const std::string& type, OptionRow& row) {
  size_t colon = std::min(type.find(':'), type.size());
  row.value = type.substr(0, colon);
  size_t open = type.find('{'), close = type.rfind('}');
  if (open == type.npos || close == type.npos || close < open) return;
  row.choices = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// Flags with a value are listed as "--no-pin-threads{false}".
std::string plain_name(const std::string& name) {
  return name.substr(0, name.find('{'));
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    row.names.push_back("--" + plain_name(name));
  }
  if (row.names.empty()) row.names.push_back(option.get_name());
  row.description = option.get_description();
  row.group = option.get_group();
  row.required = option.get_required();
  if (option.get_items_expected_max() == 0) return row;  // a flag
  row.repeats = option.get_items_expected_max() > 1;
  row.default_value = option.get_default_str();
  read_type(option.get_type_name(), row);
  return row;
}

}  // namespace

void prepare(CLI::App& app) {
  app.option_defaults()->always_capture_default();
  app.set_help_flag("-h,--help", "Show the common options");
  app.set_help_all_flag("--help-all", "Show all options and notes");
}

std::vector<OptionRow> option_rows(const Verb& verb) {
  CLI::App app{std::string(verb.summary), verb.name};
  prepare(app);
  VerbAction action = verb.declare(app);  // keeps the targets of the options alive
  std::vector<OptionRow> rows;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) rows.push_back(row_of(*option));
  }
  return rows;
}

std::string verbs_with(std::span<const Verb* const> verbs, std::string_view option) {
  std::vector<std::string> found;
  for (const Verb* verb : verbs) {
    for (const OptionRow& row : option_rows(*verb)) {
      if (std::ranges::find(row.names, option) == row.names.end()) continue;
      found.push_back(fmt::format("`banyan {}`", verb->name));
      break;
    }
  }
  constexpr size_t kShown = 3;
  if (found.size() > kShown) {
    found.resize(kShown);
    found.emplace_back("others");
  }
  if (found.size() < 2) return found.empty() ? "" : found.front();
  std::string last = std::move(found.back());
  found.pop_back();
  return fmt::format("{} and {}", fmt::join(found, ", "), last);
}

std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min({text.find(';'), text.find(". "), text.find(": ")}));
}

}  // namespace banyan::cli
