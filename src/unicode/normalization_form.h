// Unicode normalization forms, by utf8proc.
#pragma once

#include <string>

#include "banyan/status.h"

namespace banyan {

enum class NormalizationForm { kNfc, kNfd, kNfkc, kNfkd };

// Brings `text` (valid UTF-8) to the form, in place and in linear time. Text that NFC would not
// change, which is nearly all text, costs a look at each character.
Status normalize(NormalizationForm form, std::string& text);

}  // namespace banyan
