#include "cli/options/yaml_config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

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

}  // namespace

std::vector<CLI::ConfigItem> YamlConfig::from_config(std::istream& input) const {
  std::vector<CLI::ConfigItem> items;
  try {
    YAML::Node root = YAML::Load(input);
    if (root.IsNull()) return items;
    if (!root.IsMap()) fail("the file is not a mapping of option names to values");
    for (const auto& entry : root) {
      // `name:` without a value leaves the option unset.
      CLI::ConfigItem item = read_item(entry.first, entry.second);
      if (!item.inputs.empty()) items.push_back(std::move(item));
    }
  } catch (const YAML::Exception& e) {
    fail(fmt::format("not YAML at line {}, column {}: {}", e.mark.line + 1, e.mark.column + 1,
                     e.msg));
  }
  return items;
}

}  // namespace banyan::cli
