// The golden checkpoints under tests/golden/models and what transformers computed from them; see
// tools/README.md for the names and shapes.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "weights/files/safetensors.h"

namespace banyan::test {

// An error: the largest absolute difference over the reference's largest absolute value.
struct GoldenErrors {
  std::vector<double> hidden;  // after the embedding and after each layer
  double final = 0;
  double logits = 0;
};

struct GoldenCase {
  std::string name;
  std::string dtype;  // "float32", "bfloat16", "float16"
  int layers = 0;
  GoldenErrors error_native;  // of transformers in `dtype`; empty for float32

  std::string folder() const;
  std::string config() const;  // the text of its config.json
};
std::ostream& operator<<(std::ostream& out, const GoldenCase& golden);

std::vector<GoldenCase> golden_cases();

class GoldenReference {
 public:
  explicit GoldenReference(const GoldenCase& golden);

  std::vector<float> floats(const std::string& name) const;
  std::vector<TokenId> ids(const std::string& name) const;

 private:
  SafetensorsFile file_;
};

}  // namespace banyan::test
