// banyan._native, the extension module behind python/banyan. Its names are private.
#include "bindings.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "Bindings of include/banyan; use the package banyan.";
  module.attr("__version__") = BANYAN_VERSION;
  banyan::python::define_programs(module);  // first, since the engine returns its backends
  banyan::python::define_engine(module);
}
