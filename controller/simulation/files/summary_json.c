#include "controller/simulation/files/summary_json.h"

#include "base/json_write.h"

#include <inttypes.h>

static void write_score(const struct score *s, const char *indent, struct buf *out)
{
	buf_printf(out, "%s\"requests\": %" PRId64 ",\n", indent, s->requests);
	buf_printf(out, "%s\"late\": %" PRId64 ",\n", indent, s->late);
	buf_printf(out, "%s\"late_share\": %.8f,\n", indent, score_late_share(s));
	buf_printf(out, "%s\"gave_up\": %" PRId64 ",\n", indent, s->gave_up);
	buf_printf(out, "%s\"started\": %" PRId64 ",\n", indent, s->started);
	buf_printf(out, "%s\"waiting_at_end\": %" PRId64 ",\n", indent, s->waiting);
	buf_printf(out, "%s\"wait_p50_s\": ", indent);
	score_write_wait(s, s->wait_p50, out);
	buf_printf(out, ",\n%s\"wait_p99_s\": ", indent);
	score_write_wait(s, s->wait_p99, out);
	buf_text(out, ",\n");
	buf_printf(out, "%s\"gpu_hours\": %.4f,\n", indent, score_gpu_hours(s));
	buf_printf(out, "%s\"dollars\": %.4f,\n", indent, score_dollars(s));
	buf_printf(out, "%s\"starts\": %" PRId64 ",\n", indent, s->starts);
	buf_printf(out, "%s\"removals\": %" PRId64 ",\n", indent, s->removals);
	buf_printf(out, "%s\"lost\": %" PRId64 ",\n", indent, s->lost);
	buf_printf(out, "%s\"refused\": %" PRId64 ",\n", indent, s->refused);
	buf_printf(out, "%s\"standby_gpu_hours\": %.4f,\n", indent, (double)s->standby_gpu_ms / (double)HOUR);
	buf_printf(out, "%s\"lent_replica_hours\": %.4f,\n", indent, (double)s->lent_replica_ms / (double)HOUR);
	buf_printf(out, "%s\"batch_lost_hours\": %.4f", indent, (double)s->batch_lost_ms / (double)HOUR);
}

static void write_classes(const struct pool_score *p, struct buf *out)
{
	if (!p->class_count)
		return;
	buf_text(out, ",\n      \"classes\": {");
	for (size_t i = 0; i < p->class_count; i++) {
		const struct class_score *c = &p->classes[i];
		buf_text(out, i ? ",\n        " : "\n        ");
		json_write_text(c->name, out);
		buf_printf(out, ": { \"requests\": %" PRId64 ", \"late\": %" PRId64 ", \"slot_hours\": %.4f, ",
			   c->requests, c->late, (double)c->slot_ms / (double)HOUR);
		buf_printf(out, "\"dollars\": %.4f }", (double)c->micro_dollars / 1e6);
	}
	buf_text(out, "\n      }");
}

void summary_json(const struct summary_run *run, const struct run_result *result, struct buf *out)
{
	buf_text(out, "{\n  \"program\": ");
	json_write_text(run->program, out);
	buf_text(out, ",\n  \"policy\": ");
	json_write_text(run->policy, out);
	buf_text(out, ",\n  \"setting\": ");
	json_write_text(run->setting, out);
	buf_printf(out, ",\n  \"seed\": %" PRIu64, run->seed);
	buf_printf(out, ",\n  \"tick_s\": %.3f", (double)run->interval / 1000);
	buf_printf(out, ",\n  \"warm_up_s\": %.3f", (double)run->warm_up / 1000);
	buf_printf(out, ",\n  \"simulated_s\": %.3f", (double)result->simulated / 1000);
	buf_printf(out, ",\n  \"complete\": %s", result->stopped ? "false" : "true");
	buf_text(out, ",\n  \"pools\": {");
	for (size_t i = 0; i < run->fleet->pool_count; i++) {
		buf_text(out, i ? ",\n    " : "\n    ");
		json_write_text(run->fleet->pools[i].name, out);
		buf_text(out, ": {\n");
		write_score(&result->pools[i].whole, "      ", out);
		buf_text(out, ",\n      \"scored\": {\n");
		write_score(&result->pools[i].scored, "        ", out);
		buf_text(out, "\n      }");
		write_classes(&result->pools[i], out);
		buf_text(out, "\n    }");
	}
	buf_text(out, "\n  }\n}\n");
}
