#include "tier/breaker.h"

#include "base/log.h"

namespace banyan {

bool Breaker::closed() const {
  std::lock_guard lock(mutex_);
  return Clock::now() >= open_until_;
}

void Breaker::succeeded() {
  std::lock_guard lock(mutex_);
  failures_ = 0;
}

void Breaker::failed(std::string_view why) {
  std::lock_guard lock(mutex_);
  trouble_ = why;
  if (++failures_ < kFailuresMax) return;
  failures_ = kFailuresMax - 1;  // after the pause one failure is enough
  bool open = Clock::now() < open_until_;
  open_until_ = Clock::now() + kPause;
  if (!open) spdlog::warn("{} is left alone for {} s: {}", what_, kPause.count(), trouble_);
}

std::string Breaker::trouble() const {
  std::lock_guard lock(mutex_);
  return Clock::now() < open_until_ ? trouble_ : "";
}

}  // namespace banyan
