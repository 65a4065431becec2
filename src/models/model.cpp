#include "models/model.h"

#include "base/check.h"

namespace banyan {

Tensor Model::predict(Step& /*s*/, Tensor /*from*/) const {
  CHECK(false, "{} was loaded without a layer that drafts", info_.architecture);
  return {};
}

}  // namespace banyan
