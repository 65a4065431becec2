// banyan._native: what python/banyan is made of. Its names are not for users.
#include "bindings.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "Bindings of include/banyan; use the package banyan.";
  module.attr("__version__") = BANYAN_VERSION;
  banyan::python::define_programs(module);  // first: the engine returns its backends
  banyan::python::define_engine(module);
}
