/*
 * Ticks of a history that end later than it is: of a machine whose clock ran
 * ahead. Everything that follows them would be told in their time for ever.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/millis.h"

#include <stdbool.h>

/*
 * Keeps the whole file under another name, which is appended to `aside`, and takes what is later than `now` out of the
 * one that goes on: ticks, and sums of hours. Without any `aside` stays empty. Launches and drains stay, as of `now`,
 * and where no tick does the fleet that was in force last. Nobody may have it open. False, with the file as it was,
 * when there is no room for both.
 */
bool history_put_future_aside(const char *path, millis now, struct buf *aside, struct error *e) MUST_USE;
