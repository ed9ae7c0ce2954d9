/* Text from outside, made safe to show in a message: cut to 40 bytes, control and high bytes as \xNN, in quotes. */
#pragma once
#include <stddef.h>

#define QUOTE_ROOM 176

/* Writes into `room` and returns it. */
const char *quote(char room[QUOTE_ROOM], const char *text, size_t len);
