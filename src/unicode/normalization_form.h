// Unicode normalization forms, by utf8proc.
#pragma once

#include <string>

#include "banyan/status.h"

namespace banyan {

enum class NormalizationForm { kNfc, kNfd, kNfkc, kNfkd };

// Normalizes `text` (valid UTF-8) in place in linear time. Text already in NFC, which is nearly all
// text, costs one check per character.
Status normalize(NormalizationForm form, std::string& text);

}  // namespace banyan
