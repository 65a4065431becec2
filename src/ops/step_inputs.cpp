#include "ops/step_inputs.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kAlignment = 64;

template <class T>
size_t bytes_of(const std::vector<T>& array) {
  return array.size() * sizeof(T);
}

}  // namespace

void StepImage::split_by_form(const Batch& b) {
  prompt_.clear();
  decode_.clear();
  for (size_t i = 0; i < b.spans.size(); ++i) {
    SpanArgs first = b.spans[i], second = first;
    first.row_count = std::clamp(b.prompt_tokens[i] - first.first_position, 0, first.row_count);
    second.row_begin += first.row_count;
    second.first_position += first.row_count;
    second.row_count -= first.row_count;
    if (first.row_count > 0) prompt_.push_back(first);
    if (second.row_count > 0) decode_.push_back(second);
  }
  if (prompt_.empty()) decode_.clear();  // they are the batch's spans
}

void StepImage::add_shared(const Batch& b) {
  stored_.clear();
  if (b.shared_rows.empty()) return;
  stored_.insert(stored_.end(), b.spans.begin(), b.spans.end());
  stored_.insert(stored_.end(), b.shared_rows.begin(), b.shared_rows.end());
}

// Slots in turn: a few hundred spans at most, and few slots.
void StepImage::sort_by_adapter(const Batch& b) {
  adapted_rows_.clear();
  adapter_begins_.clear();
  int32_t last = b.adapters.empty() ? -1 : std::ranges::max(b.adapters);
  if (last < 0) return;
  for (int32_t slot = 0; slot <= last; ++slot) {
    adapter_begins_.push_back(narrow<int32_t>(std::ssize(adapted_rows_)));
    for (size_t i = 0; i < b.spans.size(); ++i) {
      if (b.adapters[i] != slot) continue;
      for (int32_t row = 0; row < b.spans[i].row_count; ++row) {
        adapted_rows_.push_back(b.spans[i].row_begin + row);
      }
    }
  }
  adapter_begins_.push_back(narrow<int32_t>(std::ssize(adapted_rows_)));
}

template <class Body>
void StepImage::for_arrays(const Batch& b, const Body& body) {
  size_t index = 0;
  auto each = [&](const auto& array, auto*& pointer) { body(index++, array, pointer); };
  each(b.tokens, inputs_.tokens);
  each(b.positions, inputs_.positions);
  each(b.spans, inputs_.spans.device);
  each(stored_, inputs_.stored.device);
  each(prompt_, inputs_.prompt.device);
  each(decode_, inputs_.decode.device);
  each(adapter_begins_, inputs_.adapted.begins);
  each(adapted_rows_, inputs_.adapted.rows);
  each(b.prompt_tokens, inputs_.prompt_tokens);
  each(b.drafts, inputs_.drafts);
  each(b.logit_rows, inputs_.logit_rows);
  each(b.hidden_rows, inputs_.hidden_rows);
  each(b.copies, inputs_.copies);
  for (size_t c = 0; c < b.tables.size(); ++c) {
    each(b.tables[c].captures, inputs_.tables[c].captures);
  }
  for (size_t c = 0; c < b.tables.size(); ++c) each(b.tables[c].units, inputs_.tables[c].units);
  CHECK(index <= kArraysMax, "{} arrays", index);
}

const StepInputs& StepImage::load(const Batch& batch) {
  split_by_form(batch);
  add_shared(batch);
  sort_by_adapter(batch);
  bool grown = false;
  for_arrays(batch, [&](size_t index, const auto& array, auto*&) {
    if (bytes_of(array) <= rooms_[index]) return;
    size_t room = std::max(bytes_of(array), 2 * rooms_[index]);
    rooms_[index] = (room + kAlignment - 1) / kAlignment * kAlignment;
    grown = true;
  });
  if (grown) block_ = DeviceBlock(queue_, std::accumulate(rooms_.begin(), rooms_.end(), size_t{0}));

  size_t used = 0, place = 0;  // the last arrays are the longest
  for_arrays(batch, [&](size_t index, const auto& array, auto*&) {
    if (!array.empty()) used = place + bytes_of(array);
    place += rooms_[index];
  });
  Staging stage(queue_, block_.data(), used);
  place = 0;
  for_arrays(batch, [&](size_t index, const auto& array, auto*& pointer) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(block_.data() + place);
    if (!array.empty()) std::memcpy(stage.data() + place, array.data(), bytes_of(array));
    place += rooms_[index];
  });
  stage.upload();
  set_spans(inputs_.spans, batch.spans);
  set_spans(inputs_.stored, stored_);
  if (stored_.empty()) inputs_.stored = inputs_.spans;
  set_spans(inputs_.prompt, prompt_);
  set_spans(inputs_.decode, decode_);
  if (prompt_.empty()) inputs_.decode = inputs_.spans;
  inputs_.adapted.count = std::ssize(adapted_rows_);
  inputs_.adapted.slots = adapter_begins_.empty() ? 0 : std::ssize(adapter_begins_) - 1;
  return inputs_;
}

void StepImage::set_spans(SpanList& list, const std::vector<SpanArgs>& spans) const {
  list.host = spans;
  if (queue_.ops().host_memory) list.host = {list.device, spans.size()};
}

// The block is ours, so that what kernels only read can be written here.
FollowDraftsArgs StepImage::unknown(const Batch& batch) const {
  return {.spans = inputs_.spans.count(),
          .after = const_cast<SpanArgs*>(inputs_.spans.device),
          .positions = const_cast<int32_t*>(inputs_.positions),
          .drafts = batch.drafts.empty() ? nullptr : const_cast<DraftRows*>(inputs_.drafts),
          .next_tokens = const_cast<TokenId*>(inputs_.tokens)};
}

}  // namespace banyan
