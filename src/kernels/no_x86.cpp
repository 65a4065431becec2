// Stands in for kernels/x86 on other processors.
