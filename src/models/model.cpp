#include "models/model.h"

#include "base/check.h"

namespace banyan {

Tensor Model::predict(Step& /*s*/, Tensor /*hidden*/) const {
  CHECK(false, "{} was loaded without its MTP layer", info_.architecture);
  return {};
}

}  // namespace banyan
