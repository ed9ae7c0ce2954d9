#include "controller/commands/team_autoscaler.h"

#include "base/file.h"
#include "base/quantity.h"
#include "base/resource.h"
#include "signals/engine_metrics.h"

#include <stdio.h>
#include <string.h>

enum { AUTOSCALERS_MAX = 200 };

static const struct yaml_limits limits = {
	.bytes = 16 << 20, .nodes = 1000000, .depth = 64, .documents = 5000, .takes_all = true
};

struct reading {
	const struct manifest *manifest;
	struct arena *arena;
	struct findings *findings;
	struct team_autoscaler *items;
	size_t count;
	millis removal;		     /* of an unneeded node; -1: nothing says it */
	struct buf others, left_out; /* left_out: lines, each an object and why */
};

/* One object while its settings are collected. */
struct scaler {
	struct reading *reading;
	struct buf setting;
	bool has_metric[3], has_mean;
};

static void find(struct reading *r, const struct yaml_node *n, const char *allowed, const char *remedy)
{
	CLEANUP(buf_release) struct buf path = { 0 }, found = { 0 };

	yaml_path(n, &path);
	buf_printf(&found, "'%s'", n->kind == YAML_SCALAR ? n->text : n->kind == YAML_MAP ? "a map" : "a list");
	findings_add(r->findings, &(struct finding){ .file = n->file,
						     .line = n->line,
						     .column = n->column,
						     .path = path.text,
						     .found = found.text,
						     .allowed = allowed,
						     .remedy = remedy });
}

static bool amount(struct reading *r, const struct yaml_node *n, double *out)
{
	int64_t milli;

	if (n->kind != YAML_SCALAR || !amount_milli(n->text, &milli)) {
		find(r, n, "a quantity, like 5 or 500m", "");
		return false;
	}
	*out = (double)milli / 1000;
	return true;
}

/* Appends ",key=value" where the map has the number. */
static void put_number(struct scaler *s, const struct yaml_node *map, const char *key, const char *setting)
{
	const struct yaml_node *n = map ? yaml_child(map, key) : NULL;
	double value;

	if (n && amount(s->reading, n, &value))
		buf_printf(&s->setting, ",%s=%.9g", setting, value);
}

enum { METRIC_RUNNING, METRIC_WAITING, METRIC_TOTAL, METRIC_NONE };
static const char *const metric_settings[] = { "running", "waiting", "total" };

/* Adapters for custom metrics rename "vllm:num_requests_waiting" to "vllm_num_requests_waiting". */
static bool names_metric(const char *expression, const char *metric)
{
	CLEANUP(buf_release) struct buf renamed = { 0 };

	buf_text(&renamed, metric);
	for (char *c = renamed.text; *c; c++)
		*c = *c == ':' ? '_' : *c;
	return strstr(expression, metric) || strstr(expression, renamed.text);
}

static int metric_of(const char *expression)
{
	bool has_running = false, has_waiting = false;

	for (int engine = 0; engine < ENGINE_COUNT; engine++) {
		struct engine_metrics rows = engine_metrics((enum engine)engine);

		for (size_t i = 0; i < rows.count; i++) {
			has_running |=
				rows.rows[i].quantity == ENGINE_RUNNING && names_metric(expression, rows.rows[i].name);
			has_waiting |=
				rows.rows[i].quantity == ENGINE_WAITING && names_metric(expression, rows.rows[i].name);
		}
	}
	return has_running && has_waiting ? METRIC_TOTAL
	       : has_running		  ? METRIC_RUNNING
	       : has_waiting		  ? METRIC_WAITING
					  : METRIC_NONE;
}

/* A metric with its target a replica; `is_value`: of target type Value. */
static void put_metric(struct scaler *s, const struct yaml_node *expression, const struct yaml_node *target,
		       bool is_value)
{
	const char *query = expression->kind == YAML_SCALAR ? expression->text : "";
	int metric = metric_of(query);
	bool is_mean = !strncmp(query, "avg", 3);
	double value;

	if (metric == METRIC_NONE) {
		find(s->reading, expression, "a metric of running or waiting requests, like vllm:num_requests_waiting",
		     "other metrics are not in the model; compare with the nearest that is");
	} else if (!strncmp(query, "max", 3) || !strncmp(query, "min", 3) || (is_value && !is_mean)) {
		find(s->reading, expression, "sum() with AverageValue, or avg()", "");
	} else if (s->has_metric[metric]) {
		find(s->reading, expression, "one target of each metric", "");
	} else if (amount(s->reading, target, &value)) {
		/* replicas * mean / target is what the sum asks for by AverageValue */
		s->has_mean |= is_mean && !is_value;
		s->has_metric[metric] = true;
		buf_printf(&s->setting, ",%s=%.9g", metric_settings[metric], value);
	}
}

static void read_hpa_metric(struct scaler *s, const struct yaml_node *metric)
{
	static const char *const types[][2] = { { "Pods", "pods" },
						{ "External", "external" },
						{ "Object", "object" } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		const struct yaml_node *of = yaml_child(metric, types[i][1]);
		const struct yaml_node *name = YAML_AT(of, "metric", "name"),
				       *mean = YAML_AT(of, "target", "averageValue"),
				       *value = YAML_AT(of, "target", "value");

		if (!of)
			continue;
		if (!name || (!mean && !value))
			find(s->reading, of, "metric.name, and target.averageValue or target.value", "");
		else
			put_metric(s, name, mean ? mean : value, !mean);
		return;
	}
	find(s->reading, metric, "type Pods, External or Object",
	     "CPU and memory say nothing about a model server's queue; they are not in the model");
}

/* A rule of `behavior`; what is absent has the defaults of the API. */
static void read_rule(struct scaler *s, const struct yaml_node *rule, const char *direction)
{
	static const char *const selects[] = { "Max", "Min", "Disabled" };
	const struct yaml_node *policies = rule ? yaml_child(rule, "policies") : NULL;
	const char *select = rule ? yaml_text(rule, "selectPolicy") : NULL;
	bool has[2] = { false };
	char key[32];

	snprintf(key, sizeof key, "%s_window", direction);
	put_number(s, rule, "stabilizationWindowSeconds", key);
	for (size_t i = 0; select && i < 3; i++)
		if (!strcmp(select, selects[i]))
			buf_printf(&s->setting, ",%s_select=%zu", direction, i);
	for (const struct yaml_node *p = policies ? policies->first : NULL; p; p = p->next) {
		const char *type = yaml_text(p, "type");
		bool is_percent = type && !strcmp(type, "Percent");

		if (!type || (!is_percent && strcmp(type, "Pods") != 0) || has[is_percent]) {
			find(s->reading, p, "one policy of type Pods and one of type Percent", "");
			continue;
		}
		has[is_percent] = true;
		snprintf(key, sizeof key, "%s_%s", direction, is_percent ? "percent" : "pods");
		put_number(s, p, "value", key);
		snprintf(key, sizeof key, "%s_%s_s", direction, is_percent ? "percent" : "pods");
		put_number(s, p, "periodSeconds", key);
	}
	for (int i = 0; policies && i < 2; i++)
		if (!has[i])
			buf_printf(&s->setting, ",%s_%s=0", direction, i ? "percent" : "pods");
}

static void read_behaviour(struct scaler *s, const struct yaml_node *behavior)
{
	read_rule(s, behavior ? yaml_child(behavior, "scaleUp") : NULL, "up");
	read_rule(s, behavior ? yaml_child(behavior, "scaleDown") : NULL, "down");
}

static void read_hpa(struct scaler *s, const struct yaml_node *spec)
{
	const struct yaml_node *metrics = yaml_child(spec, "metrics");

	for (const struct yaml_node *m = metrics ? metrics->first : NULL; m; m = m->next)
		read_hpa_metric(s, m);
	put_number(s, spec, "minReplicas", "min");
	put_number(s, spec, "maxReplicas", "max");
	read_behaviour(s, yaml_child(spec, "behavior"));
}

static void read_trigger(struct scaler *s, const struct yaml_node *trigger)
{
	const struct yaml_node *query = YAML_AT(trigger, "metadata", "query"),
			       *threshold = YAML_AT(trigger, "metadata", "threshold");
	const char *type = yaml_text(trigger, "type"), *kind = yaml_text(trigger, "metricType");

	if (!type || strcmp(type, "prometheus") != 0 || !query || !threshold)
		find(s->reading, trigger, "type prometheus, with a query and a threshold",
		     "other triggers are not in the model");
	else
		put_metric(s, query, threshold, kind && !strcmp(kind, "Value"));
	put_number(s, yaml_child(trigger, "metadata"), "activationThreshold", "activation");
}

static void read_scaled_object(struct scaler *s, const struct yaml_node *spec)
{
	const struct yaml_node *triggers = yaml_child(spec, "triggers");
	const char *least = yaml_text(spec, "minReplicaCount"), *idle = yaml_text(spec, "idleReplicaCount");

	for (const struct yaml_node *t = triggers ? triggers->first : NULL; t; t = t->next)
		read_trigger(s, t);
	if (!least || !strcmp(least, "0") || (idle && !strcmp(idle, "0")))
		buf_text(&s->setting, ",zero=1");
	put_number(s, spec, "minReplicaCount", "min");
	if (yaml_child(spec, "maxReplicaCount"))
		put_number(s, spec, "maxReplicaCount", "max");
	else
		buf_text(&s->setting, ",max=100");
	put_number(s, spec, "cooldownPeriod", "cooldown");
	read_behaviour(s, YAML_AT(spec, "advanced", "horizontalPodAutoscalerConfig", "behavior"));
}

enum { NO_POOL = -1 };

/* The pool whose workload the object scales; one without a target by its name. */
static long pool_of(const struct reading *r, const struct yaml_node *object, const char *target)
{
	const char *namespace = yaml_text(yaml_child(object, "metadata"), "namespace");

	for (size_t i = 0; target && i < r->manifest->fleet.pool_count; i++) {
		const struct warm_pool *p = &r->manifest->pools[i];
		const char *name = p->spec.workload.target.name ? p->spec.workload.target.name : p->metadata.name;

		if (!strcmp(name, target) &&
		    (!namespace || !p->metadata.namespace || !strcmp(namespace, p->metadata.namespace)))
			return (long)i;
	}
	return NO_POOL;
}

/* Half of its settings would be another autoscaler's. */
static void leave_out(struct reading *r, const char *label, const struct finding *why)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	finding_print(why, &text);
	buf_printf(&r->left_out, "%s is left out of the comparison: %s\n", label, text.text);
}

typedef void settings_read_fn(struct scaler *s, const struct yaml_node *spec);

static settings_read_fn *reader_of(const char *kind)
{
	return !strcmp(kind, "HorizontalPodAutoscaler") ? read_hpa
	       : !strcmp(kind, "ScaledObject")		? read_scaled_object
							: NULL;
}

/* False with what is not in the model among the findings. */
static bool read_settings(struct scaler *s, const struct yaml_node *object, settings_read_fn *read)
{
	struct reading *r = s->reading;
	const struct yaml_node *spec = yaml_child(object, "spec");
	size_t before = r->findings->count;

	read(s, spec);
	if (r->findings->count == before && !s->setting.len)
		find(r, object, "an autoscaler with a metric", "");
	if (!s->has_metric[METRIC_RUNNING] && !s->has_metric[METRIC_WAITING] && !s->has_metric[METRIC_TOTAL] &&
	    r->findings->count == before)
		find(r, spec ? spec : object, "at least one metric of running or waiting requests", "");
	if (s->has_mean)
		buf_text(&s->setting, ",mean=1");
	return r->findings->count == before && s->setting.len;
}

static void add_scaler(struct reading *r, const struct yaml_node *object, const char *kind, settings_read_fn *read)
{
	const struct yaml_node *metadata = yaml_child(object, "metadata");
	const char *target = yaml_text(YAML_AT(object, "spec", "scaleTargetRef"), "name"),
		   *name = yaml_text(metadata, "name"), *namespace = yaml_text(metadata, "namespace");
	CLEANUP(buf_release) struct buf label = { 0 };
	long pool = pool_of(r, object, target);

	buf_printf(&label, "%s %s%s%s", kind, namespace ? namespace : "", namespace ? "/" : "", name ? name : "?");
	if (pool == NO_POOL) {
		buf_printf(&r->others, "%s%s scales %s", r->others.len ? "; " : "", label.text,
			   target ? target : "nothing");
		return;
	}
	if (r->count == AUTOSCALERS_MAX)
		return;
	struct scaler s = { .reading = r };
	size_t before = r->findings->count;
	if (read_settings(&s, object, read))
		r->items[r->count++] = (struct team_autoscaler){ .pool = (size_t)pool,
								 .label = arena_strdup(r->arena, label.text, label.len),
								 .setting = arena_strdup(r->arena, s.setting.text + 1,
											 s.setting.len - 1) };
	else if (r->findings->count > before)
		leave_out(r, label.text, &r->findings->items[before]);
	buf_release(&s.setting);
}

const char *team_autoscaler_setting(const struct yaml_node *object, struct arena *a)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct reading r = { .arena = a, .findings = &findings };
	struct scaler s = { .reading = &r };
	const char *kind = yaml_text(object, "kind");
	settings_read_fn *read = kind ? reader_of(kind) : NULL;
	const char *setting = NULL;

	if (read && read_settings(&s, object, read))
		setting = arena_strdup(a, s.setting.text + 1, s.setting.len - 1);
	buf_release(&s.setting);
	return setting;
}

static void keep_removal(struct reading *r, millis value)
{
	r->removal = value > r->removal ? value : r->removal;
}

static void read_node_pool(struct reading *r, const struct yaml_node *object)
{
	const struct yaml_node *n = YAML_AT(object, "spec", "disruption", "consolidateAfter");
	millis after;

	if (n && n->kind == YAML_SCALAR && !strcmp(n->text, "Never"))
		keep_removal(r, 24 * HOUR);
	else if (n && n->kind == YAML_SCALAR && duration_parse(n->text, strlen(n->text), &after))
		keep_removal(r, after);
}

static void read_deployment(struct reading *r, const struct yaml_node *object)
{
	static const char option[] = "--scale-down-unneeded-time=";
	static const char *const lists[] = { "command", "args" };
	const struct yaml_node *containers = YAML_AT(object, "spec", "template", "spec", "containers");

	for (const struct yaml_node *c = containers ? containers->first : NULL; c; c = c->next)
		for (size_t i = 0; i < 2; i++) {
			const struct yaml_node *list = yaml_child(c, lists[i]);
			for (const struct yaml_node *n = list ? list->first : NULL; n; n = n->next) {
				const char *value = n->text + strlen(option);
				millis after;

				if (n->kind == YAML_SCALAR && !strncmp(n->text, option, strlen(option)) &&
				    duration_parse(value, strlen(value), &after))
					keep_removal(r, after);
			}
		}
}

static void read_object(struct reading *r, const struct yaml_node *object)
{
	const char *kind = yaml_text(object, "kind");
	const struct yaml_node *items = yaml_child(object, "items");

	for (const struct yaml_node *n = items && items->kind == YAML_LIST ? items->first : NULL; n; n = n->next)
		read_object(r, n);
	if (!kind || items)
		return;
	if (reader_of(kind))
		add_scaler(r, object, kind, reader_of(kind));
	else if (!strcmp(kind, "NodePool"))
		read_node_pool(r, object);
	else if (!strcmp(kind, "Deployment"))
		read_deployment(r, object);
}

static bool finish(struct reading *r, const char *name, struct error *e)
{
	for (size_t i = 0; r->removal >= 0 && i < r->count; i++) {
		CLEANUP(buf_release) struct buf setting = { 0 };

		buf_printf(&setting, "%s,removal=%lld", r->items[i].setting, (long long)(r->removal / SECOND));
		r->items[i].setting = arena_strdup(r->arena, setting.text, setting.len);
	}
	if (r->findings->count && !r->count)
		return findings_error(r->findings, e);
	fputs(r->left_out.len ? r->left_out.text : "", stderr);
	if (!r->count)
		return error_set(
			e, ERROR_INVALID,
			"%s: no HorizontalPodAutoscaler or ScaledObject scales a pool's workload%s%s; name the "
			"workload in spec.workload.scaleTargetRef of the WarmPool, or leave --autoscalers out",
			name, r->others.len ? ": " : "", r->others.len ? r->others.text : "");
	return true;
}

bool team_autoscalers_read(const char *path, const struct manifest *m, struct arena *a, struct team_autoscaler **out,
			   size_t *count, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(findings_release) struct findings findings = { 0 };
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct yaml_documents docs;
	struct reading r = { .manifest = m, .arena = a, .findings = &findings, .removal = -1 };

	if (!file_read(path, limits.bytes, &text, e))
		return error_wrap(e, "--autoscalers");
	struct yaml_source source = { name, text.text ? text.text : "", text.len, limits };
	r.items = arena_array(a, struct team_autoscaler, AUTOSCALERS_MAX);
	if (!yaml_parse_source(&source, a, &docs, &findings))
		return findings_error(&findings, e);
	for (size_t i = 0; i < docs.count; i++)
		if (docs.roots[i])
			read_object(&r, docs.roots[i]);
	bool ok = finish(&r, name, e);
	buf_release(&r.others);
	buf_release(&r.left_out);
	*out = r.items;
	*count = r.count;
	return ok;
}
