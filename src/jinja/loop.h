// The state of one running for loop, available as `loop` inside it.
#pragma once

#include <span>
#include <string_view>

#include "jinja/runtime.h"

namespace banyan::jinja {

struct Loop {
  Interpreter* interpreter = nullptr;
  const Stmt* definition = nullptr;
  Scope* outer = nullptr;  // the scope around the loop
  std::span<const Value> source;
  size_t next = 0;         // index into source
  bool filtered = false;   // source elements must still pass the loop's condition
  bool has_after = false;  // `after` was read ahead
  Value after, current, previous, last_changed;
  int64_t index0 = -1;
  int64_t depth0 = 0;
};

// Advances; false at the end.
Result<bool> loop_advance(Runtime& rt, Loop& loop);
Result<int64_t> loop_length(Runtime& rt, Loop& loop);
// loop.index, loop.last, ...; absent if there is no such attribute.
Result<Value> loop_attribute(Runtime& rt, Loop& loop, std::string_view name);

}  // namespace banyan::jinja
