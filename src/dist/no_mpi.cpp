// Stands in for comm_mpi.cpp in builds without BANYAN_MPI.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "dist/comm_mpi.h"

namespace banyan {

Status join_mpi() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr || std::string_view(size) == "1") return {};
  return unsupported(
      "mpirun started {} processes, but this program was compiled without MPI: "
      "scripts/install_deps mpi, then scripts/build release -DBANYAN_MPI=ON",
      size);
}

void leave_mpi() {}

Comm* mpi_world() {
  return nullptr;
}

}  // namespace banyan
