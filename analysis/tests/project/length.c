/* What an archive brings. */
long longest;

void measure(long length) {
    if (length > longest) longest = length;
}
