// banyan completion: shell scripts that complete verbs, options and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "cli/options/checks.h"
#include "cli/options/option_table.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

// In single quotes, which all shells here understand.
std::string quoted(std::string text) {
  for (size_t i = text.find('\''); i != text.npos; i = text.find('\'', i + 4)) {
    text.replace(i, 1, "'\\''");
  }
  return "'" + text + "'";
}

// The first words of all verbs, or, after "bench", the second words.
std::set<std::string> words_after(std::string_view first) {
  std::set<std::string> words;
  for (const Verb* verb : verbs()) {
    std::string_view name = verb->name;
    size_t space = std::min(name.find(' '), name.size());
    if (first.empty()) words.emplace(name.substr(0, space));
    if (!first.empty() && name.substr(0, space) == first && space < name.size()) {
      words.emplace(name.substr(space + 1));
    }
  }
  return words;
}

std::vector<std::string> option_names(const std::vector<OptionRow>& rows) {
  std::vector<std::string> names;
  for (const OptionRow& row : rows) {
    for (const std::string& name : row.names) {
      if (name.starts_with('-')) names.push_back(name);
    }
  }
  return names;
}

// ---- bash ----

std::string bash_values(const OptionRow& row) {
  if (!row.choices.empty()) {
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))",
                       fmt::join(row.choices, " "));
  }
  if (row.takes_folder()) return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\"))";
  if (row.takes_file()) return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))";
  return "COMPREPLY=()";
}

// One case of the script for a verb: values after an option that takes one, otherwise option names.
std::string bash_verb(const Verb& verb) {
  std::vector<OptionRow> rows = option_rows(verb);
  std::string text = fmt::format("    {})\n      case \"$previous\" in\n", quoted(verb.name));
  for (const OptionRow& row : rows) {
    if (row.value.empty() || row.is_positional()) continue;
    text += fmt::format("        {}) {}; return ;;\n", fmt::join(row.names, "|"), bash_values(row));
  }
  auto positional = std::ranges::find_if(rows, &OptionRow::is_positional);
  std::string others = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))";
  if (positional != rows.end() && !positional->choices.empty()) others = bash_values(*positional);
  return text + fmt::format(
                    "      esac\n      case \"$current\" in\n"
                    "        -*) COMPREPLY=($(compgen -W '{}' -- \"$current\")) ;;\n"
                    "        *) {} ;;\n      esac ;;\n",
                    fmt::join(option_names(rows), " "), others);
}

std::string bash_script() {
  std::string text =
      "# bash completion of banyan; made by `banyan completion bash`.\n_banyan() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local verb=\"${COMP_WORDS[1]}\"\n";
  text += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{} help --help --version' -- \"$current\"))\n"
      "    return\n  fi\n",
      fmt::join(words_after(""), " "));
  for (const std::string& first : words_after("")) {
    std::set<std::string> second = words_after(first);
    if (second.empty()) continue;
    text += fmt::format(
        "  if [ \"$verb\" = {0} ] && [ \"$COMP_CWORD\" -eq 2 ] && [[ \"$current\" != -* ]]; then\n"
        "    COMPREPLY=($(compgen -W '{1}' -- \"$current\"))\n    return\n  fi\n"
        "  case \"$verb:${{COMP_WORDS[2]}}\" in {2}) verb+=\" ${{COMP_WORDS[2]}}\" ;; esac\n",
        first, fmt::join(second, " "),
        fmt::format("{0}:{1}", first, fmt::join(second, fmt::format("|{}:", first))));
  }
  text += "  case \"$verb\" in\n";
  for (const Verb* verb : verbs()) text += bash_verb(*verb);
  return text + "  esac\n}\ncomplete -F _banyan banyan\n";
}

// ---- zsh ----

// The value specification of an option for _arguments.
std::string zsh_value(const OptionRow& row) {
  if (row.value.empty()) return "";
  std::string action = row.takes_folder() ? "_files -/" : row.takes_file() ? "_files" : " ";
  if (!row.choices.empty()) action = fmt::format("({})", fmt::join(row.choices, " "));
  return fmt::format(":{}:{}", row.value, action);
}

std::string zsh_description(const OptionRow& row) {
  std::string text = first_sentence(row.description);
  for (size_t i = 0; (i = text.find_first_of("[]:\\", i)) != text.npos; i += 2) {
    text.insert(i, "\\");
  }
  return text;
}

std::string zsh_verb(const Verb& verb) {
  std::string text = fmt::format("    {})\n      _arguments", quoted(verb.name));
  for (const OptionRow& row : option_rows(verb)) {
    if (row.is_positional()) {
      text += " \\\n        " + quoted("*" + zsh_value(row));
      continue;
    }
    for (const std::string& name : row.names) {
      text += " \\\n        " + quoted(fmt::format("{}{}[{}]{}", row.repeats ? "*" : "", name,
                                                   zsh_description(row), zsh_value(row)));
    }
  }
  return text + " ;;\n";
}

std::string zsh_script() {
  std::string text = "#compdef banyan\n# Made by `banyan completion zsh`.\n_banyan() {\n";
  text += fmt::format("  if (( CURRENT == 2 )); then\n    compadd {} help\n    return\n  fi\n",
                      fmt::join(words_after(""), " "));
  text += "  local verb=$words[2]\n  integer count=2\n";
  for (const std::string& first : words_after("")) {
    std::set<std::string> second = words_after(first);
    if (second.empty()) continue;
    text += fmt::format(
        "  if [[ $verb == {0} ]]; then\n"
        "    if (( CURRENT == 3 )); then compadd {1}; fi\n"
        "    if [[ $words[3] == ({2}) ]]; then verb+=\" $words[3]\"; count=3; fi\n  fi\n",
        first, fmt::join(second, " "), fmt::join(second, "|"));
  }
  text += "  shift $(( count - 1 )) words\n  (( CURRENT -= count - 1 ))\n  case $verb in\n";
  for (const Verb* verb : verbs()) text += zsh_verb(*verb);
  return text +
         "  esac\n}\nif [[ $funcstack[1] == _banyan ]]; then _banyan; else compdef _banyan "
         "banyan; fi\n";
}

// ---- fish ----

std::string fish_option(const Verb& verb, const OptionRow& row) {
  std::string line = fmt::format("complete -c banyan -n '__banyan_verb {}'", verb.name);
  for (const std::string& name : row.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  line += " -d " + quoted(first_sentence(row.description));
  if (row.value.empty()) return line + "\n";
  line += row.takes_folder() || row.takes_file() ? " -r -F" : " -x";
  if (!row.choices.empty()) line += fmt::format(" -a '{}'", fmt::join(row.choices, " "));
  return line + "\n";
}

std::string fish_script() {
  std::string text =
      "# fish completion of banyan; made by `banyan completion fish`.\n"
      "function __banyan_verb\n"
      "  string match -q -- \"*banyan $argv *\" (commandline -opc | string join ' ')' '\nend\n";
  for (const Verb* verb : verbs()) {
    std::string name = verb->name;
    size_t space = std::min(name.find(' '), name.size());
    std::string condition = space == name.size() ? "test (count (commandline -opc)) -eq 1"
                                                 : "__banyan_verb " + name.substr(0, space);
    if (space < name.size()) {
      text +=
          fmt::format("complete -c banyan -f -n 'test (count (commandline -opc)) -eq 1' -a {}\n",
                      name.substr(0, space));
    }
    text += fmt::format("complete -c banyan -f -n '{}' -a {} -d {}\n", condition,
                        space < name.size() ? name.substr(space + 1) : name, quoted(verb->summary));
    for (const OptionRow& row : option_rows(*verb)) {
      if (!row.is_positional()) text += fish_option(*verb, row);
    }
  }
  return text;
}

Result<int> run_completion(const std::string& shell) {
  fmt::print("{}", shell == "bash" ? bash_script() : shell == "zsh" ? zsh_script() : fish_script());
  return kExitSuccess;
}

VerbAction declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "Shell to write the completions for")
      ->required()
      ->type_name("SHELL")
      ->transform(one_of({"bash", "zsh", "fish"}));
  return [shell] { return run_completion(*shell); };
}

}  // namespace

const Verb kCompletionVerb = {"completion",
                              "Print a script that completes verbs and options in a shell",
                              "  source <(banyan completion bash)\n"
                              "  banyan completion zsh > ~/.zfunc/_banyan\n"
                              "  banyan completion fish > ~/.config/fish/completions/banyan.fish\n",
                              declare_completion};

}  // namespace banyan::cli
