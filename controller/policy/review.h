/*
 * The rule in force: its review every quarter of an hour, the real late
 * share beside it, the price of every objective, and the self-test.
 */
#pragma once
#include "controller/policy/learn.h"

/* Adds what really came of this tick: late requests and replicas held. */
void review_seen(struct pool_memory *m, const struct snapshot *s, size_t pool, const struct demand_reading *r,
		 bool is_filling);
/* Adds what the shadow of the rule in force expected of it. */
void review_expected(struct pool_memory *m, double late, double held);
/* Chooses again when it is time. */
void review_rule(struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l);
/* What the last day says of shadow and reality. */
enum self_test review_self_test(const struct pool_memory *m, double late_allowed);
/* The choice as it stands, for saying why. */
struct choice_input review_input(const struct pool_memory *m, const struct snapshot *s, size_t pool,
				 const struct learned *l);
