// Extracts the answer from a model's text: the last number, or the letter of a choice.
//
// Texts may contain any bytes; time is linear in their length.
//
// Stateless; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace banyan {

// The last number in `text`, normalised: no thousands separators, no leading zeros, no trailing
// zeros in a fraction, so that equal numbers give equal strings. "about -$1,234.50." gives
// "-1234.5".
std::optional<std::string> last_number(std::string_view text);

// The letter A to J that `text` chooses, by the rules of MMLU-Pro's authors. The first rule that
// applies wins. The rules: the first "answer is X" or "answer is (X)"; the last letter on the first
// line with "answer: X"; the last letter that stands alone. A letter at the start of a word never
// counts.
std::optional<std::string> chosen_letter(std::string_view text);

}  // namespace banyan
