// Golden checkpoints that are kept as a recipe: `weights.txt` has the shape and the spread of every
// tensor. Their elements follow from a hash of name and index (tools/goldens/grown.py, which makes
// the same ones for the reference) or, after a first line `numpy SEED`, from numpy's generator
// (tools/goldens/drawn.py).
#pragma once

#include <string>
#include <vector>

#include "support/safetensors.h"

namespace banyan::test {

// The folder of golden checkpoint `name`: the one in the tree, or where it has but a recipe, one
// with the weights made up, which lasts until the process ends. Either's path ends in the name.
std::string golden_folder(const std::string& name);

// The tensors of a recipe. Aborts on a line that is wrong.
std::vector<TestTensor> grow_tensors(const std::string& recipe);

}  // namespace banyan::test
