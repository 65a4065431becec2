// Speculation from the model's hidden states, with its own MTP layer (models/prediction.h) or an
// EAGLE-3 head (models/eagle3.h). After each step it runs over
// the accepted rows, each paired with its next token (for the last row, the one just drawn). Then
// it runs over its own predictions, one pass per further token for all sequences. Draft tokens are
// drawn with the noise of their positions, as the model's will be. Engine's thread only.
#pragma once

#include <memory>

#include "engine/drafters/drafter.h"
#include "engine/runner.h"

namespace banyan {

// The runner must outlive the drafter, and its model must have such a layer.
std::unique_ptr<Drafter> make_mtp_drafter(Runner& runner);

}  // namespace banyan
