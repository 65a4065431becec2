// Drafts of the model's own layer that predicts further tokens (models/prediction.h). After each
// step it runs over the rows that count, paired with the tokens after them, which for the last row
// is the one just drawn; then over its own predictions, one pass for each further token of all
// sequences. Its tokens are drawn with the noise of their positions, as the model's will be.
#pragma once

#include <memory>

#include "engine/drafters/drafter.h"
#include "engine/runner.h"

namespace banyan {

// The runner, whose model must have such a layer, outlives the drafter.
std::unique_ptr<Drafter> make_mtp_drafter(Runner& runner);

}  // namespace banyan
