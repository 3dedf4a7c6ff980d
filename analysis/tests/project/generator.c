/* A program of the build's own, which receives nothing. */
#include <stdio.h>
int main(void) { return puts("/* generated */") < 0; }
