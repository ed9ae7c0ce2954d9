/* The one unit of time in this program: milliseconds. Points in time count from the Unix epoch. */
#pragma once
#include <stdint.h>

typedef int64_t millis;

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
