/* The two forms of traffic behind queue.h. */
#pragma once
#include "controller/simulation/queue.h"

void requests_open(struct queue *q);
void requests_advance(struct queue *q, millis until);
void requests_seat_open(struct queue *q, size_t seat, millis now);
void requests_fill(struct queue *q, millis now);
millis requests_seat_drain(struct queue *q, size_t seat);
int64_t requests_seat_lose(struct queue *q, size_t seat, millis now);
int64_t requests_waiting_late(const struct queue *q, millis now);
double requests_slot_ms(const struct queue *q, millis span);

void cohorts_open(struct queue *q);
void cohorts_advance(struct queue *q, millis until);
millis cohorts_seat_drain(struct queue *q, millis now);
int64_t cohorts_seat_lose(struct queue *q, bool is_draining, millis now);
int64_t cohorts_waiting_late(const struct queue *q, millis now);
double cohorts_slot_ms(const struct queue *q, millis span);
