/* Answers Intel's MKL, which asks this function whether the processor is Intel's, with yes.

   MKL then takes the kernels for the instructions that the processor has. On any other answer it
   takes slower ones. PyTorch's wheels export the function, so a preloaded library replaces it. */
int mkl_serv_intel_cpu_true(void) { return 1; }
