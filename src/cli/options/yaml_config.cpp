#include "cli/options/yaml_config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/quote.h"

namespace banyan::cli {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw CLI::ConfigError("--config: " + message, CLI::ExitCodes::ConfigError);
}

std::string scalar(const YAML::Node& node, const std::string& key) {
  if (node.IsScalar()) return node.Scalar();
  fail(fmt::format("{} is neither a value nor a list of values", quote(key)));
}

CLI::ConfigItem read_item(const YAML::Node& name, const YAML::Node& value) {
  CLI::ConfigItem item;
  if (!name.IsScalar()) fail("a key is not a scalar");
  item.name = name.Scalar();
  std::ranges::replace(item.name, '_', '-');
  if (value.IsSequence()) {
    for (const YAML::Node& one : value) item.inputs.push_back(scalar(one, item.name));
  } else if (!value.IsNull()) {
    item.inputs.push_back(scalar(value, item.name));
  }
  return item;
}

// Options that set the same thing: one on the command line takes the place of all in the file.
using SameThing = std::array<const char*, 3>;
constexpr std::array kSameThing = std::to_array<SameThing>({
    {"--chunked-prefill-size", "--ubatch-size"},
    {"--speculative-algorithm", "--spec-type", "--speculative-config"},
    {"--kv-cache-dtype", "--cache-type-k", "--cache-type-v"},
    {"--sampling-defaults", "--generation-config"},
});

bool is_overridden(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw("--" + name);
  for (const SameThing& names : kSameThing) {
    bool is_one = false, given = false;
    for (const char* member : names) {
      const CLI::Option* other = member == nullptr ? nullptr : app.get_option_no_throw(member);
      if (other == nullptr) continue;
      is_one = is_one || other == option;
      given = given || other->count() > 0;
    }
    if (is_one && given) return true;
  }
  return false;
}

}  // namespace

std::vector<CLI::ConfigItem> YamlConfig::from_config(std::istream& input) const {
  std::vector<CLI::ConfigItem> items;
  std::set<std::string> names;
  try {
    YAML::Node root = YAML::Load(input);
    if (root.IsNull()) return items;
    if (!root.IsMap()) fail("the file is not a mapping of option names to values");
    for (const auto& entry : root) {
      // `name:` without a value leaves the option unset.
      CLI::ConfigItem item = read_item(entry.first, entry.second);
      if (!names.insert(item.name).second) fail(fmt::format("{} is given twice", quote(item.name)));
      if (item.inputs.empty() || is_overridden(app_, item.name)) continue;
      items.push_back(std::move(item));
    }
  } catch (const YAML::Exception& e) {
    fail(fmt::format("not YAML at line {}, column {}: {}", e.mark.line + 1, e.mark.column + 1,
                     e.msg));
  }
  return items;
}

}  // namespace banyan::cli
