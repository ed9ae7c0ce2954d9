/* What the tables of the manifest's keys share. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define AT(record, member) .offset = offsetof(struct record, member)
#define DOLLARS(n)	   (INT64_C(1000000) * (n))
