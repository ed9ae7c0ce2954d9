/* What a browser tells of where a request comes from: against pages from elsewhere. Pure. */
#pragma once
#include <stdbool.h>

struct gate_origin {
	const char *host, *origin;	     /* headers of the request; NULL: without */
	const char *fetch_site, *fetch_mode; /* Sec-Fetch-Site and -Mode */
};

/* localhost, 127.x.x.x or [::1], with any port: a name that somebody made point to this machine is none of these. */
bool gate_is_local_host(const char *host);
/* Nothing says that a page of another site asks; following a link from one is no harm. */
bool gate_is_same_site(const struct gate_origin *o);
