// One instruction while it is decoded: families of instructions (families.h) ask it for modifiers
// and operands in order, and leave what runs it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ptx/instruction.h"
#include "ptx/text.h"

namespace banyan::ptx {

// What names mean where an instruction stands.
class Names {
 public:
  virtual ~Names() = default;
  // The register of that name, or what a special register such as %tid.x is filled into.
  virtual Operand find_register(std::string_view name) = 0;
  // The same value in every lane.
  virtual Operand constant(uint64_t value, uint32_t bytes) = 0;
  // The address of a variable in its space, or nullopt.
  virtual std::optional<uint64_t> find_variable(std::string_view name) const = 0;
};

class Line {
 public:
  Line(std::string_view text, Names& names);

  std::string_view name() const { return name_; }
  Instruction instruction;  // the operands and the guard are filled in by others

  // Whether the instruction has this modifier, which then counts as understood.
  bool take(std::string_view modifier);
  void need(std::string_view modifier);
  // The first modifier that starts so, without its dot, or an empty text.
  std::string_view take_prefix(std::string_view prefix);
  // The first modifier that is a type and was not taken.
  Type take_type();
  bool has_type() const;
  // The next modifier that was not taken, or an empty text.
  std::string_view take_next();

  // The next operand: as text, or appended to operands(). A register must have the size of the
  // type, unless `any_width`.
  size_t left() const { return texts_.size() - next_; }
  std::string_view text();
  std::string_view peek() const;
  Operand value(Type type, bool any_width = false);
  Operand result(Type type, bool any_width = false);
  // A result that nobody wants.
  void sink(Type type);
  void predicate();
  void address();
  // `[address, {values}]`; how many values.
  size_t address_and_values(Type type);
  uint64_t number();
  // A list in braces; its length.
  size_t values(Type type, bool any_width, bool is_result);
  // The name of an instruction to go to.
  void target() { label_ = text(); }
  std::string_view label() const { return label_; }
  // `d|p`: a result and a predicate, which is `_` if it is not there.
  void result_and_predicate(Type type);

  std::vector<Operand>& operands() { return operands_; }
  // Fails unless every modifier and operand was asked for.
  void check_complete() const;

 private:
  Operand read(std::string_view text, Type type, bool any_width);
  // What is between brackets.
  void add_address(std::string_view text);
  Operand add(Operand operand);
  uint64_t immediate(std::string_view text, Type type) const;

  Names& names_;
  std::string_view name_, label_;
  std::vector<std::string_view> modifiers_, texts_;
  size_t next_ = 0;
  std::vector<Operand> operands_;
};

}  // namespace banyan::ptx
