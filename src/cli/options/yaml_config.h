// --config FILE.yaml: a mapping from option names to values. The command line overrides it.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace banyan::cli {

class YamlConfig : public CLI::Config {
 public:
  // `app` is the command whose options these are; it must outlive this.
  explicit YamlConfig(const CLI::App& app) : app_(app) {}

  // Keys are option names without their dashes; '_' may stand for '-'. Values are scalars or lists
  // of scalars. Throws CLI::ConfigError, which main reports.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // Returns "": configurations are only read.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

 private:
  const CLI::App& app_;
};

}  // namespace banyan::cli
