/* Numbers as people read them. Each fills and returns the text it is given. */
#pragma once
#include "base/millis.h"

struct human {
	char text[32];
};

struct human human_count(int64_t n);		      /* 1,234,567 */
struct human human_decimal(double value, int places); /* 1,234.5 */
struct human human_short(double value);		      /* 950, 12.4k, 3.1M */
struct human human_duration(millis d);		      /* 850ms, 2.5s, 6m20s, 3h05m, 2d4h */
struct human human_share(double share);		      /* 0.0074 -> 0.74 % */
struct human human_dollars(double dollars);	      /* $0.48, $14,871 */
