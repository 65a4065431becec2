#include "jinja/library/builtins.h"

#include <algorithm>
#include <initializer_list>

namespace banyan::jinja {
namespace {

const Builtin* find_in(std::span<const Builtin> table, std::string_view name) {
  auto found = std::find_if(table.begin(), table.end(),
                            [&](const Builtin& builtin) { return builtin.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const Builtin* find_first(std::initializer_list<std::span<const Builtin>> tables,
                          std::string_view name) {
  for (auto table : tables) {
    if (const Builtin* found = find_in(table, name)) return found;
  }
  return nullptr;
}

}  // namespace

const Builtin* find_global(std::string_view name) {
  return find_in(globals(), name);
}

const Builtin* find_filter(std::string_view name) {
  return find_first({text_filters(), sequence_filters(), number_filters()}, name);
}

const Builtin* find_test(std::string_view name) {
  return find_in(tests(), name);
}

const Builtin* find_method(Kind kind, std::string_view name) {
  if (kind == Kind::kString) return find_first({string_methods(), string_predicates()}, name);
  return find_in(container_methods(kind), name);
}

}  // namespace banyan::jinja
