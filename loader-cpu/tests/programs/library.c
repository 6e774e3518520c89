/* A shared object that is no program. */
int twice(int number) { return 2 * number; }
