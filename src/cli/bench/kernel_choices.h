// Which kernels `--kernels auto` takes on this machine, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "kernels/choice/choice.h"

namespace banyan::cli {

// A line for each choice with the formats that it is for; after a probe also what that has found.
std::string choices_table(const RefreshedChoices& chosen);

// [{weights, kernels, reason, speeds}], speeds after a probe only: {kernels: part of the last's}.
Json choices_json(const RefreshedChoices& chosen);

}  // namespace banyan::cli
