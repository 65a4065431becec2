// A regex for the names of matrices, from an option or a file. Matching takes bounded time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

// One thread at a time.
class NamePattern {
 public:
  // kInvalidArgument says where the regex is wrong.
  static Result<NamePattern> compile(std::string_view regex);

  // Whether the regex is found in `name`; false if that takes too long.
  bool matches(std::string_view name) const;

 private:
  struct Compiled;
  explicit NamePattern(std::shared_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<Compiled> compiled_;
};

}  // namespace banyan
