#include "controller/simulation/queue_forms.h"

double queue_service(const struct queue_truth *t, double prompt_tokens, double output_tokens)
{
	double ms = output_tokens * (double)t->inter_token_latency_us / 1000;

	if (t->prefill_tokens_per_second > 0)
		ms += (double)t->slots * prompt_tokens * 1000 / (double)t->prefill_tokens_per_second;
	return ms;
}

millis queue_service_ms(double service)
{
	return service < 1 ? 1 : service < (double)SERVICE_MOST ? (millis)(service + 0.5) : SERVICE_MOST;
}

void queue_open(struct queue *q, const struct queue_truth *truth, const struct trace *trace, struct arena *a)
{
	*q = (struct queue){ .truth = *truth, .trace = trace, .arena = a };
	deadlines_open(&q->deadlines, truth->deadline);
	if (trace && trace->label_count)
		q->labels = arena_array(a, struct label_use, trace->label_count);
	if (trace && trace->is_binned)
		cohorts_open(q);
	else
		requests_open(q);
}

void queue_advance(struct queue *q, millis until)
{
	if (q->cohorts)
		cohorts_advance(q, until);
	else
		requests_advance(q, until);
}

void queue_seat_open(struct queue *q, size_t seat, millis now)
{
	while (q->seats.count <= seat)
		LIST_ADD(q->arena, &q->seats, ((struct seat){ 0 }));
	q->seats.items[seat] = (struct seat){ .state = SEAT_OPEN, .before = NONE, .after = NONE };
	q->open_seats++;
	if (q->requests)
		requests_seat_open(q, seat, now);
}

millis queue_seat_drain(struct queue *q, size_t seat, millis now)
{
	millis end = q->cohorts ? cohorts_seat_drain(q, now) : requests_seat_drain(q, seat);

	q->seats.items[seat].state = SEAT_DRAINING;
	q->open_seats--;
	q->draining_seats++;
	return end;
}

int64_t queue_seat_lose(struct queue *q, size_t seat, millis now)
{
	bool is_draining = q->seats.items[seat].state == SEAT_DRAINING;
	int64_t lost = q->cohorts ? cohorts_seat_lose(q, is_draining, now) : requests_seat_lose(q, seat, now);

	queue_seat_close(q, seat);
	if (q->requests)
		requests_fill(q, now);
	return lost;
}

void queue_seat_close(struct queue *q, size_t seat)
{
	if (q->seats.items[seat].state == SEAT_DRAINING)
		q->draining_seats--;
	else
		q->open_seats--;
	q->seats.items[seat].state = SEAT_CLOSED;
}

int64_t queue_seat_running(const struct queue *q, size_t seat)
{
	if (!q->cohorts)
		return q->seats.items[seat].running;
	return q->open_seats ? q->running / (int64_t)q->open_seats : 0;
}

int64_t queue_waiting_late(const struct queue *q, millis now)
{
	return q->cohorts ? cohorts_waiting_late(q, now) : requests_waiting_late(q, now);
}

int64_t queue_demand_milli(const struct queue *q, millis span)
{
	double slot_ms = q->cohorts ? cohorts_slot_ms(q, span) : requests_slot_ms(q, span);
	double milli = slot_ms * 1000 / ((double)span * (double)q->truth.slots);

	return milli < 1e15 ? (int64_t)milli : INT64_C(1000000000000000);
}
