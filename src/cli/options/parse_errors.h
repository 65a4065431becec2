// Errors of a command line, in our words instead of CLI11's.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace banyan::cli {

// The commands that have an option of that name, "`banyan serve`"; empty: none.
using OptionOwners = std::function<std::string(const std::string& option)>;

// Names the option and the value. For an unknown option, names the commands that have it, or
// suggests a similar name. `app` threw `error` while parsing.
std::string explain(const CLI::ParseError& error, const CLI::App& app,
                    const OptionOwners& owners_of = {});

// The index of the first word that looks like llama.cpp's -cram, but is not an option: one dash and
// several letters. CLI11 would read it as -c with the value "ram", and -hft as -h. Empty: none.
std::optional<size_t> find_unknown_short_name(std::span<const std::string> words,
                                              const CLI::App& app);

// The error for an unknown option.
std::string unknown_option(const std::string& word, const CLI::App& app,
                           const OptionOwners& owners_of = {});

}  // namespace banyan::cli
