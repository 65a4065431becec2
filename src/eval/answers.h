// The answer that a model's text gives: the last number, or the letter of a choice.
//
// Texts are any bytes; the work grows with their length alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace banyan {

// The last number in `text` in one spelling: no commas between thousands, no zeros in front or at
// the end of a fraction, so equal numbers are equal texts. "about -$1,234.50." is "-1234.5".
std::optional<std::string> last_number(std::string_view text);

// The letter A to J that `text` settles on, by the rules of MMLU-Pro's authors, the first that
// applies: the first "answer is X" or "answer is (X)"; the last letter of the first line that has
// "answer: X"; the last letter that stands alone. A letter is never the beginning of a word.
std::optional<std::string> chosen_letter(std::string_view text);

}  // namespace banyan
