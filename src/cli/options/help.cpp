#include "cli/options/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/options/option_table.h"

namespace banyan::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kTextColumn = 28;

// Wraps `text` at kColumns. All lines start at column `indent`; the indent of the first line is
// already written.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

// "-m, --model MODEL": the short name and the first long name, or all names.
std::string name_of(const OptionRow& row, bool all) {
  if (row.is_positional()) return row.names.front();
  std::vector<std::string> shown;
  size_t longs = 0;
  for (const std::string& name : row.names) {
    bool is_long = name.starts_with("--");
    if (all || !is_long || longs == 0) shown.push_back(name);
    if (is_long) ++longs;
  }
  std::string text = shown.front().starts_with("--") ? "    " : "";
  text += fmt::format("{}", fmt::join(shown, ", "));
  return row.value.empty() ? text : text + " " + row.value;
}

// The description, with the choices that it does not name and the default.
std::string text_of(const OptionRow& row) {
  std::string text = row.description;
  auto named = [&](const std::string& choice) { return text.find(choice) != std::string::npos; };
  bool lists = row.choices.empty() || std::ranges::all_of(row.choices, named);
  if (!lists) text += fmt::format(" (one of {})", fmt::join(row.choices, ", "));
  if (!row.default_value.empty()) text += fmt::format(" [{}]", row.default_value);
  if (row.required) text += " (required)";
  return text;
}

std::string entry(const OptionRow& row, bool all) {
  std::string line = "  " + name_of(row, all);
  bool fits = line.size() + 2 <= kTextColumn;
  line += fits ? std::string(kTextColumn - line.size(), ' ') : "\n" + std::string(kTextColumn, ' ');
  return line + wrapped(text_of(row), kTextColumn) + "\n";
}

std::string usage(const Verb& verb, const std::vector<OptionRow>& rows) {
  std::string text = fmt::format("Usage: banyan {}", verb.name);
  bool optional = false;
  for (const OptionRow& row : rows) {
    if (!row.is_positional()) continue;
    std::string name = row.names.front();
    text += optional ? " [" + name + "]" : " " + name;
    optional = row.names.front() == "MODEL";  // words after MODEL can also be given as options
  }
  return text + " [OPTIONS]\n";
}

std::vector<std::string> group_names(const std::vector<OptionRow>& rows) {
  std::vector<std::string> names;
  for (const OptionRow& row : rows) {
    if (std::ranges::find(names, row.group) == names.end()) names.push_back(row.group);
  }
  std::ranges::stable_partition(names, [](const std::string& name) { return name == "Options"; });
  return names;
}

std::string group_text(const std::vector<OptionRow>& rows, const std::string& group, bool all) {
  std::string text = fmt::format("\n{}:\n", group);
  for (const OptionRow& row : rows) {
    if (row.is_positional() || row.group != group) continue;
    text += entry(row, all);
  }
  return text;
}

}  // namespace

std::string help_of(const Verb& verb, bool all) {
  std::vector<OptionRow> rows = option_rows(verb);
  std::string text = fmt::format("{}.\n\n{}", verb.summary, usage(verb, rows));
  bool has_words = std::ranges::any_of(rows, &OptionRow::is_positional);
  if (has_words) text += "\n";
  for (const OptionRow& row : rows) {
    if (row.is_positional()) text += entry(row, all);
  }
  std::vector<std::string> groups = group_names(rows);
  for (const std::string& group : groups) {
    if (all || group == "Options") text += group_text(rows, group, all);
  }
  std::erase(groups, "Options");
  bool more = !all && !groups.empty();
  if (more) {
    text += fmt::format("\nMore with `banyan {} --help-all`:\n  {}\n", verb.name,
                        wrapped(fmt::format("{}", fmt::join(groups, ", ")), 2));
  }
  std::string_view examples = verb.examples;
  size_t notes = std::min(examples.find("\n\n"), examples.size());
  text += fmt::format("\nExamples:\n{}", all ? examples : examples.substr(0, notes));
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace banyan::cli
