#include "ptx/decoder.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ptx/block.h"
#include "ptx/families.h"

namespace banyan::ptx {
namespace {

constexpr uint32_t kRegisterAlignment = 32;

size_t rounded_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

const Rule& find_rule(std::string_view name) {
  static const auto* kRules = [] {
    auto* rules = new std::unordered_map<std::string_view, Rule>;
    for (auto family :
         {arithmetic::rules(), bits::rules(), comparison::rules(), conversion::rules(),
          move::rules(), memory::rules(), control::rules(), exchange::rules(), mbarriers::rules(),
          copies::rules(), fences::rules(), wgmma::rules()}) {
      for (const Rule& rule : family) rules->emplace(rule.name, rule);
    }
    return rules;
  }();
  auto found = kRules->find(name);
  if (found == kRules->end()) fail("the instruction {} is not known", name);
  return found->second;
}

// Registers that a warp finds filled in (Warp::fill_specials).
constexpr std::string_view kSpecials[] = {"%tid.x",
                                          "%tid.y",
                                          "%tid.z",
                                          "%ntid.x",
                                          "%ntid.y",
                                          "%ntid.z",
                                          "%ctaid.x",
                                          "%ctaid.y",
                                          "%ctaid.z",
                                          "%nctaid.x",
                                          "%nctaid.y",
                                          "%nctaid.z",
                                          "%laneid",
                                          "%warpid",
                                          "%nwarpid",
                                          "%clusterid.x",
                                          "%nclusterid.x",
                                          "%cluster_ctaid.x",
                                          "%cluster_nctaid.x",
                                          "%cluster_ctarank",
                                          "%cluster_nctarank"};

}  // namespace

Decoder::Decoder(Entry& entry) : entry_(entry) {
  scopes_.push_back({.outer = -1, .registers = {}, .labels = {}});
  allocate(kLanes * 8);  // where results go that nobody wants: operands that are sinks point at 0
}

void Decoder::decode(std::string_view head, const std::vector<Variable>& shared,
                     std::string_view body, int line) {
  declare_parameters(head);
  for (const Variable& variable : shared) {
    if (variable.bytes > 0) place(variable);
  }
  std::vector<Statement> all = statements(body, line);
  // Arrays without a length come after the others, so these come first.
  for (const Statement& statement : all) {
    if (statement.kind == Statement::kDirective && !statement.text.starts_with(".reg")) {
      directive(statement);
    }
  }
  for (const Variable& variable : shared) {
    if (variable.bytes == 0) place(variable);
  }
  for (const Statement& statement : all) {
    try {
      body_statement(statement);
    } catch (const Error& error) {
      fail("{}, line {}: {}: {}", entry_.name, statement.line, statement.text, error.what());
    }
  }
  for (const Branch& branch : branches_) resolve(branch);
  // Who comes to the end returns.
  instruction({Statement::kInstruction, "ret", all.empty() ? line : all.back().line});
  entry_.register_bytes = rounded_up(entry_.register_bytes, kRegisterAlignment);
}

void Decoder::body_statement(const Statement& statement) {
  if (statement.kind == Statement::kOpen) {
    scopes_.push_back({.outer = scope_, .registers = {}, .labels = {}});
    scope_ = static_cast<int>(scopes_.size()) - 1;
  } else if (statement.kind == Statement::kClose) {
    scope_ = scopes_[scope_].outer;
  } else if (statement.kind == Statement::kLabel) {
    scopes_[scope_].labels[std::string(statement.text)] = static_cast<uint32_t>(entry_.code.size());
  } else if (statement.text.starts_with(".reg")) {
    declare_registers(statement.text.substr(4));
  } else if (statement.kind == Statement::kInstruction) {
    instruction(statement);
  }
}

void Decoder::declare_parameters(std::string_view head) {
  for (std::string_view text : split(head, ',')) {
    Variable variable = parse_variable(text);
    size_t offset = rounded_up(entry_.parameter_bytes, variable.alignment);
    entry_.parameters.push_back({std::string(variable.name), offset, variable.bytes});
    variables_[std::string(variable.name)] = offset;
    entry_.parameter_bytes = offset + variable.bytes;
  }
}

void Decoder::place(const Variable& variable) {
  bool is_local = variable.space == "local";
  size_t& end = is_local ? entry_.local_bytes : entry_.static_shared_bytes;
  uint64_t begin = is_local ? kLocalBegin : kSharedBegin;
  size_t offset = rounded_up(end, variable.alignment);
  variables_[std::string(variable.name)] = begin + offset;
  end = offset + variable.bytes;
  if (!is_local) entry_.shared_alignment = std::max(entry_.shared_alignment, variable.alignment);
}

void Decoder::directive(const Statement& statement) {
  std::string_view text = statement.text;
  if (text.starts_with(".pragma")) return;
  if (!text.starts_with(".shared") && !text.starts_with(".local")) {
    fail("{}, line {}: '{}' is not known", entry_.name, statement.line, text);
  }
  place(parse_variable(text));
}

uint32_t Decoder::allocate(uint32_t bytes) {
  uint32_t alignment = bytes < kRegisterAlignment ? 4 : kRegisterAlignment;
  auto at = static_cast<uint32_t>(rounded_up(entry_.register_bytes, alignment));
  entry_.register_bytes = at + bytes;
  return at;
}

void Decoder::declare_register(const std::string& name, Type type) {
  Operand operand;
  operand.at = allocate(type.bytes > 0 ? type.bytes * kLanes : 4);
  operand.bytes = static_cast<uint8_t>(type.bytes);
  scopes_[scope_].registers[name] = operand;
}

// ".pred %p<7>" declares %p0 to %p6; ".b32 a, b" these two.
void Decoder::declare_registers(std::string_view text) {
  text = trim(text);
  size_t end = text.find_first_of(" \t");
  auto type = parse_type(text.substr(1, end - 1));
  if (!type) fail("'{}' is no type of a register", text.substr(0, end));
  for (std::string_view name : split(text.substr(end), ',')) {
    size_t angle = name.find('<');
    if (angle == name.npos) {
      declare_register(std::string(name), *type);
      continue;
    }
    std::string_view count = name.substr(angle + 1, name.find('>') - angle - 1);
    for (int64_t i = 0; i < parse_integer(count); ++i) {
      declare_register(std::string(name.substr(0, angle)) + std::to_string(i), *type);
    }
  }
}

Operand Decoder::find_register(std::string_view name) {
  for (int scope = scope_; scope >= 0; scope = scopes_[scope].outer) {
    auto found = scopes_[scope].registers.find(name);
    if (found != scopes_[scope].registers.end()) return found->second;
  }
  if (std::ranges::find(kSpecials, name) == std::end(kSpecials)) fail("{} is not declared", name);
  Operand operand;
  operand.at = allocate(kU32.bytes * kLanes);
  operand.bytes = static_cast<uint8_t>(kU32.bytes);
  scopes_.front().registers[std::string(name)] = operand;
  entry_.specials.push_back({std::string(name), operand});
  return operand;
}

Operand Decoder::constant(uint64_t value, uint32_t bytes) {
  auto [found, is_new] = constants_.try_emplace({value, bytes});
  if (!is_new) return found->second;
  Operand& operand = found->second;
  operand.constant = true;
  operand.bytes = static_cast<uint8_t>(bytes);
  operand.at = static_cast<uint32_t>(entry_.constants.size());
  entry_.constants.resize(rounded_up(entry_.constants.size() + bytes * kLanes, kRegisterAlignment));
  for (size_t lane = 0; lane < kLanes; ++lane) {
    std::memcpy(entry_.constants.data() + operand.at + lane * bytes, &value, bytes);
  }
  return operand;
}

std::optional<uint64_t> Decoder::find_variable(std::string_view name) const {
  auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

void Decoder::instruction(const Statement& statement) {
  std::string_view text = statement.text;
  Instruction guard;
  if (text.starts_with('@')) {
    size_t end = text.find_first_of(" \t");
    std::string_view name = text.substr(1, end - 1);
    bool negated = name.starts_with('!');
    guard.guarded = true;
    guard.guard = find_register(negated ? name.substr(1) : name);
    guard.guard.negated = negated;
    text = trim(text.substr(end));
  }
  Line line(text, *this);
  find_rule(line.name()).decode(line);
  line.check_complete();
  Instruction in = line.instruction;
  if (in.run == nullptr) fail("{} is not known for this type", line.name());
  if (in.role == Instruction::Role::kProduct) entry_.has_products = true;
  in.guarded = guard.guarded;
  in.guard = guard.guard;
  in.statement = static_cast<uint32_t>(entry_.sources.size());
  entry_.operands.push_back(line.operands());
  in.operands = entry_.operands.back().data();
  in.count = static_cast<uint16_t>(entry_.operands.back().size());
  if (!line.label().empty()) branches_.push_back({entry_.code.size(), line.label(), scope_});
  entry_.sources.push_back({statement.text, statement.line});
  entry_.code.push_back(in);
}

void Decoder::resolve(const Branch& branch) {
  for (int scope = branch.scope; scope >= 0; scope = scopes_[scope].outer) {
    auto found = scopes_[scope].labels.find(branch.label);
    if (found == scopes_[scope].labels.end()) continue;
    entry_.code[branch.instruction].target = found->second;
    return;
  }
  const Entry::Source& source = entry_.source(entry_.code[branch.instruction]);
  fail("{}, line {}: there is no label {}", entry_.name, source.line, branch.label);
}

}  // namespace banyan::ptx
