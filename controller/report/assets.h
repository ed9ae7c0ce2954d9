/* The parts of the page that are the same in every report; embedded at build time by assets/embed.cmake. */
#pragma once
#include <stddef.h>

struct asset {
	const char *bytes;
	size_t size;
};

extern const struct asset asset_head_html, asset_body_html, asset_page_css, asset_tiers_css, asset_rivals_js, asset_page_js;
/* uPlot (assets/uplot), and what draws with it. */
extern const struct asset asset_chart_css, asset_chart_js, asset_draw_js;
