#include "tier/disk/write_budget.h"

#include <fmt/format.h>

#include <charconv>

namespace banyan {

WriteBudget::WriteBudget(Storage& storage, std::string path, int64_t bytes_per_day)
    : storage_(storage), path_(std::move(path)), per_day_(bytes_per_day) {
  if (per_day_ == 0) return;
  auto text = storage_.read_small(path_);
  if (!text) return;
  const char* end = text->data() + text->size();
  auto day = std::from_chars(text->data(), end, day_);
  if (day.ptr < end) (void)std::from_chars(day.ptr + 1, end, written_);
  saved_ = written_;
}

bool WriteBudget::take(int64_t bytes, int64_t now_s) {
  if (per_day_ == 0) return true;
  if (int64_t day = now_s / 86400; day != day_) {
    day_ = day;
    written_ = 0;
  }
  if (written_ > per_day_ - bytes) return false;
  written_ += bytes;
  return true;
}

int WriteBudget::save() {
  if (per_day_ == 0 || saved_ == written_) return 0;
  saved_ = written_;
  return storage_.replace(path_, fmt::format("{} {}\n", day_, written_));
}

}  // namespace banyan
