// --config FILE.yaml: a mapping from option names to values. The command line overrides it.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace banyan::cli {

class YamlConfig : public CLI::Config {
 public:
  // Keys are option names without their dashes; '_' may stand for '-'. Values are scalars or lists
  // of scalars. Throws CLI::ConfigError, which main reports.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // Returns "": configurations are only read.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }
};

}  // namespace banyan::cli
