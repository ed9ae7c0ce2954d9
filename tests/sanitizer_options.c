/* What AddressSanitizer keeps to in every program of a build with it; ASAN_OPTIONS comes on top.
 *
 * The stack of each allocation is unwound by frame pointers, which the libraries beneath us have not: beyond a few
 * frames it is noise, each time another, and the table of all stacks that were ever seen grows until it takes most of
 * the time. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "malloc_context_size=5";
}
