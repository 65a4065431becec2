// Decodes the body of an entry.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/line.h"
#include "ptx/module.h"

namespace banyan::ptx {

class Decoder : public Names {
 public:
  explicit Decoder(Entry& entry);

  // `head` declares the parameters, `shared` what lies outside of entries.
  void decode(std::string_view head, const std::vector<Variable>& shared, std::string_view body,
              int line);

  Operand find_register(std::string_view name) override;
  Operand constant(uint64_t value, uint32_t bytes) override;
  std::optional<uint64_t> find_variable(std::string_view name) const override;

 private:
  // Names that a pair of braces declares.
  struct Scope {
    int outer;  // -1: none
    std::map<std::string, Operand, std::less<>> registers;
    std::map<std::string, uint32_t, std::less<>> labels;
  };
  struct Branch {
    size_t instruction;
    std::string_view label;
    int scope;
  };

  void declare_parameters(std::string_view head);
  void place(const Variable& variable);
  void directive(const Statement& statement);
  void body_statement(const Statement& statement);
  void declare_registers(std::string_view text);
  void declare_register(const std::string& name, Type type);
  void instruction(const Statement& statement);
  void resolve(const Branch& branch);
  uint32_t allocate(uint32_t bytes);

  Entry& entry_;
  std::vector<Scope> scopes_;
  int scope_ = 0;
  std::vector<Branch> branches_;
  std::map<std::string, uint64_t, std::less<>> variables_;
  std::map<std::pair<uint64_t, uint32_t>, Operand> constants_;
};

}  // namespace banyan::ptx
