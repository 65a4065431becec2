// The one file that knows where the build puts the module, so that a compiler cache serves all
// others in any clone.
#include <memory>

#include "base/file.h"
#include "ptx/interpreted.h"

namespace banyan::ptx {

const Module* cuda_module() {
  static const std::unique_ptr<Module> kModule = []() -> std::unique_ptr<Module> {
    if (std::string_view(BANYAN_PTX).empty()) return nullptr;
    Result<std::string> text = read_file(BANYAN_PTX);
    if (!text) fail("{}: {}", BANYAN_PTX, text.error().message);
    return std::make_unique<Module>(std::move(*text));
  }();
  return kModule.get();
}

}  // namespace banyan::ptx
