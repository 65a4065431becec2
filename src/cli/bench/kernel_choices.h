// Reports which kernels `--kernels auto` chooses on this machine, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "kernels/choice/choice.h"

namespace banyan::cli {

// One line per choice with the formats that it applies to, and after a probe also the speeds found.
std::string choices_table(const RefreshedChoices& chosen);

// [{weights, kernels, reason, speeds}]. Speeds are present after a probe only: {kernels: speed
// relative to the last table}.
Json choices_json(const RefreshedChoices& chosen);

}  // namespace banyan::cli
