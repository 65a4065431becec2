// A PTX module: what nvcc -ptx writes for a file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/instruction.h"
#include "ptx/text.h"

namespace banyan::ptx {

// A declared array or scalar in some space.
struct Variable {
  std::string_view name;
  std::string_view space;  // "shared", "local", "param"
  size_t alignment, bytes;
};

// Of ".shared .align 16 .b8 name[32]". An array without a length has 0 bytes.
Variable parse_variable(std::string_view text);

class Module {
 public:
  // Throws Error if the text is no module. Entries are decoded when they are first used.
  explicit Module(std::string text);
  Module(const Module&) = delete;

  std::vector<std::string> names() const;
  const Entry& entry(const std::string& name) const;

 private:
  struct Source {
    std::string_view head, body;  // parameters; statements
    int line;                     // of the body
  };

  std::string text_;
  std::vector<Variable> shared_;  // outside of entries
  std::map<std::string, Source> sources_;
  mutable std::map<std::string, Entry> entries_;
};

}  // namespace banyan::ptx
