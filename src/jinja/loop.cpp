#include "jinja/loop.h"

#include <vector>

#include "jinja/interpreter.h"

namespace banyan::jinja {
namespace {

// The next element that passes the loop's condition; absent at the end. The condition is evaluated
// lazily, as in Python's generators: the body may change a namespace that it reads.
Result<Value> pull(Runtime& rt, Loop& loop) {
  while (loop.next < loop.source.size()) {
    Value item = loop.source[loop.next++];
    if (!loop.filtered) return item;
    TRY(rt.charge());
    if (TRY(loop.interpreter->passes_condition(loop, item))) return item;
  }
  return Value{};
}

Result<bool> peek(Runtime& rt, Loop& loop) {
  if (loop.has_after) return !loop.after.absent();
  loop.after = TRY(pull(rt, loop));
  loop.has_after = true;
  return !loop.after.absent();
}

}  // namespace

Result<bool> loop_advance(Runtime& rt, Loop& loop) {
  Value item = loop.has_after ? loop.after : TRY(pull(rt, loop));
  loop.has_after = false;
  if (item.absent()) return false;
  ++loop.index0;
  loop.previous = loop.current;
  loop.current = item;
  return true;
}

Result<int64_t> loop_length(Runtime& rt, Loop& loop) {
  if (loop.filtered) {
    std::vector<Value> rest;
    if (TRY(peek(rt, loop))) {
      for (Value item = loop.after; !item.absent(); item = TRY(pull(rt, loop))) {
        TRY(rt.charge());
        rest.push_back(item);
      }
    }
    int64_t seen = loop.index0 + 1;
    std::vector<Value> all(seen, loop.current);
    all.insert(all.end(), rest.begin(), rest.end());
    Value list = TRY(make_list(rt, all));
    loop.source = list.elements();
    loop.next = seen;
    loop.filtered = false;
    loop.has_after = false;
  }
  return std::ssize(loop.source);
}

Result<Value> loop_attribute(Runtime& rt, Loop& loop, std::string_view name) {
  if (name == "index") return make_int(loop.index0 + 1);
  if (name == "index0") return make_int(loop.index0);
  if (name == "first") return make_bool(loop.index0 == 0);
  if (name == "last") return make_bool(!TRY(peek(rt, loop)));
  if (name == "depth") return make_int(loop.depth0 + 1);
  if (name == "depth0") return make_int(loop.depth0);
  if (name == "length") return make_int(TRY(loop_length(rt, loop)));
  if (name == "revindex") return make_int(TRY(loop_length(rt, loop)) - loop.index0);
  if (name == "revindex0") return make_int(TRY(loop_length(rt, loop)) - loop.index0 - 1);
  if (name == "previtem") {
    if (loop.index0 == 0) return make_undefined_message(rt, "there is no previous item");
    return loop.previous;
  }
  if (name == "nextitem") {
    if (!TRY(peek(rt, loop))) return make_undefined_message(rt, "there is no next item");
    return loop.after;
  }
  return Value{};
}

}  // namespace banyan::jinja
