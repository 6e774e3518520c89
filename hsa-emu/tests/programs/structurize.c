/* A fault of the compiler, kept to notice when it is mended.
   Copies argv[1] to out without its '%' characters and returns the length.
   "hello" must give 5. clang 22.1.8 for gfx1100 gives 0 at -O1, -O2 and -Os; 5 at -O0.
   clang --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -ffreestanding -O2 */
__attribute__((noinline)) static char *strip(char *out, const char *in, int *ends) {
  for (;; ++in) {
    char c = *in;
    switch (c) {
    case 0: *ends = 1; return out;
    case '%': ++*ends; break;
    default: *out++ = c;
    }
  }
}
__attribute__((device_kernel, visibility("protected"))) void
_start(int argc, char **argv, char *out, int *ret) {
  int ends = 0;
  *ret = (int)(strip(out, argv[1], &ends) - out);
}
