#include "cache/state_classes.h"

#include <fmt/format.h>

#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

Status check_page(const StateSpec& spec, int page_size_tokens) {
  int tokens = spec.tokens_per_row;
  CHECK(tokens > 0, "{}: {} tokens a row", spec.name, tokens);
  if (page_size_tokens % tokens == 0 || tokens % page_size_tokens == 0) return {};
  return invalid_argument(
      "{} has one row for every {} tokens, which must divide the page size of {} or be a "
      "multiple of it; choose another page size",
      spec.name, tokens, page_size_tokens);
}

Status check_slot(const StateSpec& spec) {
  if (spec.dtype != DType::kF32) {
    return unsupported("{}: recurrent state (slots) of type {} is not supported, only F32",
                       spec.name, dtype_name(spec.dtype));
  }
  if (spec.advisory && (spec.alignment_tokens != 1 || spec.two_forms)) {
    return unsupported("{}: an advisory state must be resumable at any position", spec.name);
  }
  CHECK(spec.tokens_per_row == 1 && spec.alignment_tokens > 0, "{}", spec.name);
  CHECK(!spec.draft_log || spec.reach == StateReach::kNone, "{}", spec.name);
  return {};
}

Status check_kept(const StateSpec& spec, int page_size_tokens) {
  bool looks_back = spec.reach == StateReach::kAll || spec.reach == StateReach::kWindow;
  if (looks_back != (spec.unit == StateUnit::kPage)) {
    return unsupported("{}: this combination of unit and reach is not supported", spec.name);
  }
  if (spec.lookahead_tokens != 0) {
    return unsupported("{}: states that look {} tokens ahead are not supported", spec.name,
                       spec.lookahead_tokens);
  }
  CHECK(spec.reach != StateReach::kWindow || spec.window_tokens > 0, "{}", spec.name);
  return looks_back ? check_page(spec, page_size_tokens) : check_slot(spec);
}

}  // namespace

std::string describe(const UnitClass& unit_class) {
  std::string text = unit_class.advisory ? "advisory " : "";
  text += unit_class.paged() ? "pages" : "slots";
  if (unit_class.windowed()) {
    text += fmt::format(" of a window of {} tokens", unit_class.window_tokens);
  }
  if (unit_class.reach == StateReach::kNone) text += " of a sequence";
  return text;
}

bool StateClasses::keeps_snapshots() const {
  for (int c = 0; c < count; ++c) {
    if (classes[as_size(c)].snapshots()) return true;
  }
  return false;
}

bool StateClasses::needs_snapshots() const {
  for (int c = 0; c < count; ++c) {
    const UnitClass& unit_class = classes[as_size(c)];
    if (unit_class.snapshots() && unit_class.decides()) return true;
  }
  return false;
}

// States with full reach are resident wherever their prefix is, so advisory ones need no class of
// their own. Neither do states that are never shared.
UnitClass class_of(const StateSpec& spec) {
  bool windowed = spec.reach == StateReach::kWindow;
  bool can_miss = windowed || spec.reach == StateReach::kPoint;
  return {.unit = spec.unit,
          .reach = spec.reach,
          .window_tokens = windowed ? spec.window_tokens : 0,
          .advisory = can_miss && spec.advisory};
}

int find_class(const StateClasses& classes, const StateSpec& spec) {
  UnitClass wanted = class_of(spec);
  for (int c = 0; c < classes.count; ++c) {
    if (classes[c] == wanted) return c;
  }
  CHECK(false, "{}: no such class", spec.name);
}

Result<StateClasses> classify_states(std::span<const StateSpec> specs, int page_size_tokens) {
  StateClasses classes{.page_size_tokens = page_size_tokens};
  int alignment = page_size_tokens;
  for (const StateSpec& spec : specs) {
    TRY(check_kept(spec, page_size_tokens));
    UnitClass wanted = class_of(spec);
    auto known = std::span(classes.classes).first(as_size(classes.count));
    if (std::ranges::find(known, wanted) == known.end()) {
      if (classes.count == kUnitClassesMax) {
        return unsupported(
            "{}: more than {} classes of state ({} of them windows) are not supported", spec.name,
            kUnitClassesMax, std::ranges::count_if(known, &UnitClass::windowed));
      }
      classes.classes[as_size(classes.count++)] = wanted;
    }
    if (wanted.snapshots()) alignment = std::lcm(alignment, spec.alignment_tokens);
    classes.prompt_only |= spec.two_forms;
    classes.draft_trees &= spec.unit == StateUnit::kPage && spec.tokens_per_row == 1;
    if (spec.draft_log) classes.draft_rows_max = std::min(classes.draft_rows_max, spec.heads);
  }
  classes.snapshot_alignment_tokens = alignment;
  if (classes.needs_snapshots()) classes.resume_alignment_tokens = alignment;
  return classes;
}

UnitCounts unit_bytes(std::span<const StateSpec> specs, const StateClasses& classes) {
  UnitCounts bytes = {};
  for (const StateSpec& spec : specs) {
    bytes[as_size(find_class(classes, spec))] += spec.unit_bytes(classes.page_size_tokens);
  }
  return bytes;
}

}  // namespace banyan
