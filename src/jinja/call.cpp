// Calls of builtins, macros and recursive loops.
#include <algorithm>

#include "base/check.h"
#include "jinja/interpreter.h"

namespace banyan::jinja {
namespace {

// The position of `name` among space-separated `names`, or -1.
int position_of(std::string_view names, std::string_view name) {
  for (int at = 0; !names.empty(); ++at) {
    size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return at;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return -1;
}

int count_names(std::string_view names) {
  return names.empty() ? 0 : static_cast<int>(std::count(names.begin(), names.end(), ' ')) + 1;
}

}  // namespace

Result<Value> call_builtin(Runtime& rt, const Builtin& builtin, const Value& self,
                           const Args& args) {
  TRY(rt.charge());
  if (builtin.method == nullptr) {
    return unsupported("{} is not supported in chat templates", builtin.name);
  }
  if (builtin.parameters == "*") return builtin.method(rt, self, args);
  std::string_view names = builtin.parameters;
  bool positional_only = names.starts_with('/');
  if (positional_only) names.remove_prefix(1);
  size_t count = count_names(names);
  if (args.positional.size() > count) {
    return invalid_argument("{}() takes at most {} arguments ({} given)", builtin.name, count,
                            args.positional.size());
  }
  Value bound[8];
  CHECK(count <= std::size(bound), "{} has {} parameters", builtin.name, count);
  std::copy(args.positional.begin(), args.positional.end(), bound);
  for (const Keyword& keyword : args.keywords) {
    int at = positional_only ? -1 : position_of(names, keyword.name);
    if (at < 0) {
      return invalid_argument("{}() got an unexpected keyword argument '{}'", builtin.name,
                              shown(keyword.name));
    }
    if (!bound[at].absent()) {
      return invalid_argument("{}() got multiple values for '{}'", builtin.name, keyword.name);
    }
    bound[at] = keyword.value;
  }
  for (int i = 0; i < builtin.required; ++i) {
    if (bound[i].absent()) {
      return invalid_argument("{}() is missing argument {}", builtin.name, i + 1);
    }
  }
  return builtin.method(rt, self, {{bound, count}, {}});
}

Result<Value> call_filter(Runtime& rt, std::string_view name, const Value& value,
                          const Args& args) {
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) return invalid_argument("No filter named '{}'", shown(name));
  return call_builtin(rt, *filter, value, args);
}

Result<bool> call_test(Runtime& rt, std::string_view name, const Value& value, const Args& args) {
  const Builtin* test = find_test(name);
  if (test == nullptr) return invalid_argument("No test named '{}'", shown(name));
  return truth(TRY(call_builtin(rt, *test, value, args)));
}

Result<Value> call(Runtime& rt, const Value& function, const Args& args) {
  return rt.interpreter.call(function, args);
}

bool is_callable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:  // Python's has a __call__ that raises
    case Kind::kFunction:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kJoiner:
      return true;
    default:
      return false;
  }
}

Result<Value> Interpreter::call(const Value& function, const Args& args) {
  switch (function.kind) {
    case Kind::kFunction:
      return call_builtin(rt_, *function.function->builtin, function.function->self, args);
    case Kind::kMacro:
      return call_macro(*function.macro, args);
    case Kind::kLoop:
      return call_loop(*function.loop, args);
    case Kind::kJoiner: {
      Joiner& joiner = *function.joiner;
      if (!joiner.used) {
        joiner.used = true;
        return borrow(rt_, "");
      }
      return borrow(rt_, joiner.separator->text, joiner.separator->safe);
    }
    case Kind::kUndefined:
      return undefined_error(function);
    default:
      return invalid_argument("'{}' object is not callable", type_name(function));
  }
}

Value Interpreter::new_macro(const Stmt& stmt, Scope& scope) {
  for (Scope* at = &scope; at != nullptr && !at->captured; at = at->parent) at->captured = true;
  auto* macro = rt_.heap.make<Macro>();
  *macro = {stmt.name, &stmt, &scope};
  Value value{.kind = Kind::kMacro, .integer = 0};
  value.macro = macro;
  return value;
}

Status Interpreter::bind_macro(const Macro& macro, const Args& args, Scope& scope) {
  const Stmt& stmt = *macro.definition;
  std::vector<Keyword> rest(args.keywords.begin(), args.keywords.end());
  auto take = [&](std::string_view name) {
    auto found = std::find_if(rest.begin(), rest.end(),
                              [&](const Keyword& keyword) { return keyword.name == name; });
    if (found == rest.end()) return Value{};
    Value value = found->value;
    rest.erase(found);
    return value;
  };
  std::vector<Value> given(stmt.parameters.size());
  for (size_t i = 0; i < given.size(); ++i) {
    bool positional = i < args.positional.size();
    given[i] = positional ? args.positional[i] : take(stmt.parameters[i].name);
    store(stmt.parameters[i].symbol, make_undefined(rt_, stmt.parameters[i].name), scope);
  }
  if (stmt.uses_caller && !stmt.explicit_caller) {
    Value caller = take("caller");
    if (caller.absent()) caller = make_undefined_message(rt_, "No caller defined");
    store(ast_.caller, caller, scope);
  }
  if (stmt.uses_kwargs) {
    Dict* dict = make_dict(rt_);
    for (const Keyword& keyword : rest) {
      TRY(dict_set(rt_, *dict, borrow(rt_, keyword.name), keyword.value));
    }
    store(ast_.kwargs, dict_value(dict), scope);
  } else if (!rest.empty()) {
    return invalid_argument("macro '{}' got an unexpected keyword argument '{}'", macro.name,
                            shown(rest[0].name));
  }
  auto extra = args.positional.subspan(std::min(given.size(), args.positional.size()));
  if (stmt.uses_varargs) {
    store(ast_.varargs, TRY(make_list(rt_, extra, Kind::kTuple)), scope);
  } else if (!extra.empty()) {
    return invalid_argument("macro '{}' takes at most {} argument(s)", macro.name, given.size());
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const Parameter& parameter = stmt.parameters[i];
    if (given[i].absent() && parameter.otherwise != nullptr) {
      given[i] = TRY(evaluate(*parameter.otherwise, scope));
    }
    if (given[i].absent()) {
      given[i] = make_undefined_message(
          rt_, rt_.heap.copy(fmt::format("parameter '{}' was not provided", parameter.name)));
    }
    store(parameter.symbol, given[i], scope);
  }
  return {};
}

Result<Value> Interpreter::call_macro(const Macro& macro, const Args& args) {
  Nested nested(rt_);
  TRY(rt_.check_depth());
  const auto parameters = std::ssize(macro.definition->parameters);
  const auto keywords = std::ssize(args.keywords);
  TRY(rt_.charge(parameters * (parameters + keywords) / 8 + keywords + 1));
  Scope* scope = new_scope(macro.closure);
  TRY(bind_macro(macro, args, *scope));
  Flow flow = Flow::kNext;
  return run_captured(macro.definition->body, *scope, flow);
}

Result<Value> Interpreter::call_loop(Loop& loop, const Args& args) {
  if (!loop.definition->recursive) {
    return invalid_argument("The loop must have the 'recursive' marker to be called recursively.");
  }
  if (args.positional.size() != 1 || !args.keywords.empty()) {
    return invalid_argument("loop() takes one iterable");
  }
  Nested nested(rt_);
  TRY(rt_.check_depth());
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  auto result = run_loop(*loop.definition, *loop.outer, args[0], loop.depth0 + 1);
  out_ = outer;
  TRY(std::move(result));
  return make_string(rt_, text);
}

}  // namespace banyan::jinja
