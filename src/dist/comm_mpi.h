// Ranks that are processes, on one machine or several, which mpirun or Slurm has started.
#pragma once

#include "banyan/status.h"
#include "dist/comm.h"

namespace banyan {

// Joins the others if this process was started with them: call it first of all, and leave_mpi()
// last. kUnsupported: started with others, but compiled without BANYAN_MPI.
Status join_mpi();
void leave_mpi();

// Valid between the two; null if this process was started alone. One thread at a time uses it.
Comm* mpi_world();

}  // namespace banyan
