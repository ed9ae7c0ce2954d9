/*
 * Where the results of `preheat simulate` go: the folder, and the files in
 * it. Each file gets its name when it is whole.
 */
#pragma once
#include "controller/commands/simulate_plan.h"

struct results;

/* `folder` NULL: results only go to the terminal. `in` outlives the results. NULL with an error. */
struct results *results_open(const struct simulate_options *o, const struct simulate_inputs *in, struct error *e);
/* One observer that feeds everything. */
struct observer results_observer(struct results *r);
struct compare_result;
/* Writes what was simulated, and the comparison unless NULL, and prints the summary. */
bool results_finish(struct results *r, const struct run_result *result, const struct compare_result *compared,
		    struct error *e) MUST_USE;
void results_release(struct results *r); /* leaves no part of a file behind; takes NULL */
struct report;
struct report *results_report(struct results *r);
