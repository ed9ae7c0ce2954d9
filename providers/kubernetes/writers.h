/*
 * Who wrote spec.replicas of an object last, as its managedFields tell
 * (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management). Pure.
 */
#pragma once
#include "base/millis.h"
#include "providers/text.h"

/* Under this name our own writes stand there: the User-Agent up to its slash. */
#define OWN_FIELD_MANAGER "preheat"

extern const struct record_spec replicas_writer_record; /* of metadata>managedFields */
/* By the server's time; NULL: nobody is written down. */
const char *replicas_writer_last(const struct decoded_list *writers);
