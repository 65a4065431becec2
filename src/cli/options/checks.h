// Validators of command line values with messages of our own, and suggestions for mistyped names.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace banyan::cli {

CLI::Validator whole_between(int64_t min, int64_t max);
CLI::Validator number_between(double min, double max);

// A number from `min` to `max`; an integer if these are integers.
template <class T>
CLI::Validator between(T min, T max) {
  if constexpr (std::is_floating_point_v<T>) {
    return number_between(min, max);
  } else {
    return whole_between(min, max);
  }
}

// Writes counts of tokens out: 4k is 4000 and 4K is 4096, as vLLM has them; M and G, too.
CLI::Validator with_multiples();

// The same for the value of a hidden option, whose name CLI11 leaves out of its errors: throws
// unless it is a number, or one of `words`.
void need_number(const std::string& option, std::string text, std::vector<std::string> words = {});
// What is wrong with a value that cannot be read as the number of an option.
std::string not_a_number(const std::string& text);

// A count of tokens of 1 or more, or -1.
CLI::Validator count_or_rest();

// One of `names`, ignoring case; help, manual pages and completions list them, but not the aliases.
CLI::Validator one_of(std::vector<std::string> names, std::vector<std::string> aliases = {});
// The same for the value of a hidden option, whose name CLI11 leaves out of its errors.
void need_one_of(const std::string& option, std::string& text, std::vector<std::string> names);
// A flag whose absence differs from its negation. CLI11's add_flag would count from 0, which is not
// absent.
CLI::Option* add_choice_flag(CLI::App& app, const std::string& names, std::optional<bool>& value,
                             const std::string& description);

// A hidden option with one of these values, with which read(value) is called.
void add_hidden_choice(CLI::App& app, const std::string& name, std::vector<std::string> names,
                       std::function<void(const std::string&)> read);
// The names of floating-point types that peers have, as aliases.
std::vector<std::string> float_aliases();

// The name that `word` is probably a typo of: ignoring case and '_' for '-', only a few letters are
// wrong, missing, added or swapped. Empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

// "; did you mean NAME?", or "" if no name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// Options added during its lifetime are listed under `name` by --help-all, and not by --help.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, const std::string& name)
      : app_(app), before_(app.option_defaults()->get_group()) {
    app_.option_defaults()->group(name);
  }
  ~OptionGroup() { app_.option_defaults()->group(before_); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  CLI::App& app_;
  std::string before_;
};

}  // namespace banyan::cli
