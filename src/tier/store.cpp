#include "tier/store.h"

#include "base/check.h"

namespace banyan {

std::string_view name(TierOutcome outcome) {
  switch (outcome) {
    case TierOutcome::kDone:
      return "done";
    case TierOutcome::kAbsent:
      return "absent";
    case TierOutcome::kChecksum:
      return "checksum";
    case TierOutcome::kIdentity:
      return "identity";
    case TierOutcome::kTimeout:
      return "timeout";
    case TierOutcome::kFailed:
      return "failed";
    case TierOutcome::kRefused:
      return "refused";
  }
  CHECK(false, "outcome {}", static_cast<int>(outcome));
}

std::string_view name(TierHealth health) {
  switch (health) {
    case TierHealth::kOn:
      return "on";
    case TierHealth::kReadOnly:
      return "read-only";
    case TierHealth::kOff:
      return "off";
  }
  CHECK(false, "health {}", static_cast<int>(health));
}

}  // namespace banyan
