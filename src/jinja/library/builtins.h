// The host functions available to templates, one table per place of use.
#pragma once

#include <span>
#include <string_view>

#include "jinja/runtime.h"

namespace banyan::jinja {

std::span<const Builtin> string_methods();  // string_methods.cpp, string_tests.cpp
std::span<const Builtin> string_predicates();
std::span<const Builtin> container_methods(Kind kind);
std::span<const Builtin> globals();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> text_filters();
std::span<const Builtin> number_filters();
std::span<const Builtin> tests();

// A global function by name, or null.
const Builtin* find_global(std::string_view name);

// Helpers shared by methods and filters. split_text cuts at `separator` (null: at runs of white
// space) at most `max` times (negative: no limit).
Result<std::vector<std::string_view>> split_text(Runtime& rt, std::string_view text,
                                                 const std::string_view* separator, int64_t max,
                                                 bool from_right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
Result<Value> replace_text(Runtime& rt, const Value& text, std::string_view from,
                           std::string_view to, int64_t count);
Result<Value> center_text(Runtime& rt, const Value& text, int64_t width, std::string_view fill);

}  // namespace banyan::jinja
