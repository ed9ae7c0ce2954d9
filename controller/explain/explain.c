#include "controller/explain/explain.h"

#include "base/terminal.h"
#include "base/json.h"

#include <string.h>

/* A record, for what is common to all. */
struct record_view {
	const struct record_info *info;
	const int64_t *values;
	millis utc_offset;
	bool is_any; /* of a pool of class any, whose replicas are GPUs */
	bool is_unpriced;
};

/* --- values with their units, as people read them --- */

/* Days since 1970-01-01 to a date, by Hinnant's civil_from_days. */
static void date_of(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
	*year = yoe + era * 400 + (*month <= 2);
}

void explain_time(millis at, millis utc_offset, struct buf *out)
{
	millis local = at + utc_offset, of_day = ((local % DAY) + DAY) % DAY;
	int64_t year, month, day;

	date_of((local - of_day) / DAY, &year, &month, &day);
	buf_printf(out, "%04lld-%02lld-%02lld %02lld:%02lld:%02lld", (long long)year, (long long)month, (long long)day,
		   (long long)(of_day / HOUR), (long long)(of_day / MINUTE % 60), (long long)(of_day / SECOND % 60));
}

void explain_time_rfc3339(millis at, struct buf *out)
{
	millis part = ((at % SECOND) + SECOND) % SECOND;
	size_t start = out->len;

	explain_time(at, 0, out);
	if (out->len > start)
		out->text[start + strcspn(out->text + start, " ")] = 'T';
	if (part)
		buf_printf(out, ".%03d", (int)part);
	buf_text(out, "Z");
}

/* Without zeros at the end that say nothing. */
static void put_decimal(double value, int places, struct buf *out)
{
	struct human h = human_decimal(value, places);
	size_t len = strlen(h.text);

	if (strchr(h.text, '.')) {
		while (h.text[len - 1] == '0')
			len--;
		if (h.text[len - 1] == '.')
			len--;
	}
	buf_append(out, h.text, len);
}

static void put_milli(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	put_decimal((double)value / 1000, value > -10000 && value < 10000 ? 2 : 1, out);
}

static void put_count(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	buf_text(out, human_count(value).text);
}

static void put_share(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	put_decimal((double)value / 1e4, value > -1000 && value < 1000 ? 4 : 2, out);
	buf_text(out, " %");
}

static void put_duration(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	buf_text(out, human_duration(value).text);
}

static void put_micros(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	put_decimal((double)value / 1000, 2, out);
	buf_text(out, "ms");
}

static void put_dollars(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	buf_text(out, human_dollars((double)value / 1e6).text);
}

static const struct printer {
	const char *unit;
	void (*put)(int64_t value, millis utc_offset, struct buf *out);
} printers[] = {
	{ "count", put_count }, { "milli", put_milli },	  { "ppm", put_share },	     { "ms", put_duration },
	{ "us", put_micros },	{ "time", explain_time }, { "micro$", put_dollars },
};

void explain_value(const struct field_info *field, int64_t value, millis utc_offset, struct buf *out)
{
	if (value == ABSENT) {
		buf_text(out, "none");
		return;
	}
	if (!strncmp(field->unit, "enum:", 5)) {
		const char *name = field_enum_name(field->unit + 5, value);

		buf_text(out, name ? name : "?");
		return;
	}
	for (size_t i = 0; i < sizeof printers / sizeof *printers; i++)
		if (!strcmp(field->unit, printers[i].unit))
			printers[i].put(value, utc_offset, out);
}

int64_t explain_known(const struct pool_spec *pool, const struct field_info *field, int64_t value)
{
	return pool->is_unpriced && !strcmp(field->unit, "micro$") ? ABSENT : value;
}

/* NULL when the record has no such field. */
static const struct field_info *find_field(const struct record_view *r, const char *name, size_t len, int64_t *value)
{
	for (size_t i = 0; i < r->info->count; i++) {
		const struct field_info *f = &r->info->fields[i];

		if (strlen(f->name) == len && !memcmp(f->name, name, len)) {
			*value = r->values[i];
			return f;
		}
	}
	return NULL;
}

/* One placeholder, without its braces: "name", "name|one|many" or "name:%". */
static void put_field(const struct record_view *r, const char *text, size_t len, struct buf *out)
{
	const char *bar = memchr(text, '|', len), *colon = memchr(text, ':', len);
	size_t name = bar ? (size_t)(bar - text) : colon ? (size_t)(colon - text) : len;
	int64_t value = 0;
	const struct field_info *f = find_field(r, text, name, &value);

	if (!f)
		return;
	if (colon && value != ABSENT) {
		put_decimal((double)value / 10, 1, out);
		buf_text(out, " %");
		return;
	}
	if (r->is_unpriced && value != ABSENT && !strcmp(f->unit, "micro$")) {
		buf_text(out, human_spent((double)value / 1e6, true).text);
		return;
	}
	explain_value(f, value, r->utc_offset, out);
	if (!bar)
		return;
	const char *second = memchr(bar + 1, '|', len - name - 1);
	size_t one = second ? (size_t)(second - bar) - 1 : len - name - 1;
	buf_text(out, " ");
	/* "1 replica", "1.5 replicas" */
	if (!second || value == (!strcmp(f->unit, "milli") ? 1000 : 1))
		buf_append(out, bar + 1, one);
	else
		buf_append(out, second + 1, len - name - 2 - one);
}

/* A pool of class any knows GPUs and pods. */
static void put_in_its_words(const char *text, struct buf *out)
{
	static const char *const words[][2] = {
		{ "hot replica", "GPU" }, { "replica", "GPU" }, { "sequence", "pod" }, { "request", "pod" }
	};
	enum { WORDS = sizeof words / sizeof *words };

	while (*text) {
		size_t i = 0;
		while (i < WORDS && strncmp(text, words[i][0], strlen(words[i][0])) != 0)
			i++;
		if (i == WORDS) {
			buf_append(out, text++, 1);
			continue;
		}
		buf_text(out, words[i][1]);
		text += strlen(words[i][0]);
	}
}

/*
 * Copies the text, with {field} as its value and unit, {field|one|many} as
 * value and the word for it, {field:%} as per cent of a "milli" field.
 */
static void fill_text(const struct record_view *r, const char *text, struct buf *out)
{
	CLEANUP(buf_release) struct buf own = { 0 };

	if (r->is_any && *text) {
		put_in_its_words(text, &own);
		text = own.text;
	}
	for (const char *open; (open = strchr(text, '{'));) {
		const char *close = strchr(open, '}');

		if (!close)
			break;
		buf_append(out, text, (size_t)(open - text));
		put_field(r, open + 1, (size_t)(close - open) - 1, out);
		text = close + 1;
	}
	buf_text(out, text);
}

/* --- sentences --- */

enum part {
	PART_DECIDED,
	PART_SEEN,
	PART_ENGINES,
	PART_EXPECTED,
	PART_RULE,
	PART_WHY,
	PART_HELD,
	PART_COST,
	PART_SELF_TEST,
	PART_RECORD,   /* told with the rule */
	PART_DEADLINES /* in its place */
};

static const char *const titles[] = { "Decided", "Seen",    "Engines",	"Expected", "Rule",
				      "Why",	 "Held by", "It costs", "Self-test" };

_Static_assert(sizeof titles / sizeof *titles <= EXPLANATION_PARTS_MAX, "room for every part");

enum test { IS, IS_NOT, POSITIVE, BELOW, KNOWN };

static const struct sentence {
	enum part part;
	const char *field;
	enum test test;
	int64_t value;
	const char *text;
} sentences[] = {
#define SENTENCE(part, field, test, value, text) { part, #field, test, value, text },
#include "controller/explain/sentences.def"
#undef SENTENCE
};

/* Parts that only Preheat fills: other policies leave these fields zero, and then there is nothing to tell. */
static const char *const needed[] = {
	[PART_EXPECTED] = "hold_ms",  [PART_RULE] = "hold_ms",	 [PART_WHY] = "hold_ms",
	[PART_SELF_TEST] = "hold_ms", [PART_RECORD] = "hold_ms", [PART_DEADLINES] = "hold_ms",
};

/* What a plan may ask of a group, in the order in which people want to hear it. */
static const struct ask {
	const char *field, *text;
} asks[] = {
	{ "reclaim", "take {reclaim|replica|replicas} back from the pools that borrowed" },
	{ "wake", "start {wake|replica|replicas} on stopped machines" },
	{ "adopt_refill", "let {adopt_refill|machine|machines} serve instead of standing by" },
	{ "place", "start {place|replica|replicas} on free GPUs of nodes that run or are on their way" },
	{ "cold", "start {cold|replica|replicas} on new machines" },
	{ "swap", "with {swap} of them free what serves in a dearer group" },
	{ "refill", "start {refill|replica|replicas} on new machines to be stopped as standby" },
	{ "cancel_cold", "cancel {cancel_cold|cold start|cold starts}" },
	{ "cancel_wake", "cancel {cancel_wake|wake|wakes}" },
	{ "cancel_refill", "cancel {cancel_refill|refill|refills}" },
	{ "cancel_reclaim", "cancel {cancel_reclaim|reclaim|reclaims}" },
	{ "release_asleep", "release {release_asleep|node|nodes} where every replica sleeps" },
	{ "move",
	  "empty {move} half-empty node, whose {move_pods|pod fits|pods fit} on other nodes, which saves {move_saves} "
	  "an hour" },
	{ "release", "release {release|replica|replicas}" },
	{ "stop", "keep {stop} of them stopped as standby" },
	{ "swapped", "let {swapped} of them go because a cheaper machine serves instead" },
	{ "give_back", "hand {give_back} of them to the pools that borrow" },
	{ "delete_standby", "delete {delete_standby|stopped machine|stopped machines}" },
};

static bool holds(const struct record_view *r, const struct sentence *s)
{
	int64_t value = 0;

	if (!find_field(r, s->field, strlen(s->field), &value))
		return false;
	switch (s->test) {
	case IS:
		return value == s->value;
	case IS_NOT:
		return value != s->value;
	case POSITIVE:
		return value > 0;
	case BELOW:
		return value < s->value && value != ABSENT;
	case KNOWN:
		return value != ABSENT;
	}
	return false;
}

static void tell_sentences(const struct record_view *r, enum part part, struct buf *out)
{
	struct sentence guard = { .field = (size_t)part < sizeof needed / sizeof *needed ? needed[part] : NULL,
				  .test = POSITIVE };

	if (guard.field && !holds(r, &guard))
		return;
	for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
		if (sentences[i].part == part && holds(r, &sentences[i])) {
			const char *text = sentences[i].text;

			fill_text(r, out->len || *text != ' ' ? text : text + 1, out);
		}
}

static size_t tell_asks(const struct record_view *r, const char *group, struct buf *out)
{
	size_t told = 0;

	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
		int64_t value = 0;

		if (!find_field(r, asks[i].field, strlen(asks[i].field), &value) || value <= 0)
			continue;
		if (told++)
			buf_text(out, ", ");
		else
			buf_printf(out, " In %s: ", group);
		fill_text(r, asks[i].text, out);
	}
	return told;
}

static size_t tell_group(const struct explained *x, size_t group, struct buf *out)
{
	const struct group_decision *g = &x->plan->groups[group];
	const struct pool_spec *pool = &x->fleet->pools[x->pool];
	const char *name = group < pool->group_count ? x->fleet->groups[pool->groups[group]].name : "?";
	struct record_view r = { &group_decision_info, (const int64_t *)g, x->utc_offset, pool->class == CLASS_ANY,
				 pool->is_unpriced };
	size_t told = tell_asks(&r, name, out);

	if (told)
		fill_text(&r, "; {nodes|node|nodes} there now, {nodes_desired} after it.", out);
	if (g->held_by != LIMIT_NONE) {
		buf_printf(out, " %s is held by: ", name);
		fill_text(&r, "{held_by}", out);
		if (g->blocked_until > x->now)
			fill_text(
				&r,
				"; no starts there before {blocked_until}, after {refusals|refusal|refusals} in a row",
				out);
		buf_text(out, ".");
	}
	if (g->ends_at > 0) {
		buf_printf(out, " The reservation of %s ends at ", name);
		fill_text(&r, "{ends_at}: ", out);
		fill_text(&r,
			  x->now < g->closes_at	  ? "nothing starts there from {closes_at} on."
			  : x->now < g->leaves_at ? "nothing starts there any more, and what serves there is replaced "
						    "from {leaves_at} on."
						  : "what serves there is replaced elsewhere and drained.",
			  out);
	}
	return told;
}

static void tell_groups(const struct explained *x, struct buf *out)
{
	size_t told = 0;

	for (size_t i = 0; i < x->plan->group_count; i++)
		told += tell_group(x, i, out);
	if (!told)
		buf_text(out, " Nothing is asked for.");
}

static const struct field_info wait_field = { "objective_wait", "ms", "" };

static void tell_objective(const struct explained *x, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];

	buf_text(out, " Late is what waits longer than ");
	explain_value(&wait_field, pool->objective_wait, x->utc_offset, out);
	buf_text(out, ".");
}

/* "Fell asleep on gpu-7 at 14:05:38, in 1.2s: code idle for 50 s; chat has 3 waiting and no engine awake." */
static void tell_move(const struct explained *x, const struct engine_move_record *m, struct buf *out)
{
	CLEANUP(buf_release) struct buf at = { 0 };
	bool is_done = m->outcome && !strcmp(m->outcome, "done");

	explain_time(m->asked_at, x->utc_offset, &at);
	buf_printf(out, "%s%s on %s at %s", out->len ? " " : "",
		   is_done	? (m->is_wake ? "Woke" : "Fell asleep")
		   : m->outcome ? (m->is_wake ? "Did not wake" : "Did not fall asleep")
				: (m->is_wake ? "Wakes" : "Falls asleep"),
		   m->slot, strchr(at.text, ' ') + 1);
	if (is_done && m->took > 0)
		buf_printf(out, ", in %s", human_duration(m->took).text);
	buf_printf(out, ": %s%s%s.", is_done || !m->outcome ? "" : m->outcome, is_done || !m->outcome ? "" : "; ",
		   m->why);
}

bool explain_has_deadlines(const struct explained *x)
{
	return x->plan->decision.deadline_need_milli != ABSENT;
}

/* "Since 2026-01-05 14:00:03 by rule: a need is kept in mind for 1 min, ...; of all requests ..." */
static void tell_rule(const struct explained *x, struct buf *out)
{
	CLEANUP(buf_release) struct buf at = { 0 };

	explain_time(x->share_rule_since, x->utc_offset, &at);
	buf_printf(out, "%sSince %s by rule: %s.", out->len ? " " : "", at.text, x->share_rule);
}

static void tell(const struct explained *x, enum part part, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];
	bool is_any = pool->class == CLASS_ANY;
	struct record_view r = { &pool_decision_info, (const int64_t *)&x->plan->decision, x->utc_offset, is_any,
				 pool->is_unpriced };
	bool has_deadlines = explain_has_deadlines(x);

	if (part == PART_SELF_TEST && has_deadlines) /* its shadow is of a rule */
		return;
	tell_sentences(&r, part, out);
	if (part == PART_RULE)
		tell_sentences(&r, has_deadlines ? PART_DEADLINES : PART_RECORD, out);
	if (part == PART_DECIDED)
		tell_groups(x, out);
	if (part == PART_SEEN && !is_any)
		tell_objective(x, out);
	if (part == PART_ENGINES && x->waits_for)
		buf_printf(out,
			   "%sRequests wait and no engine is awake: those of %s have requests, or cannot be read, and "
			   "so never sleep.",
			   out->len ? " " : "", x->waits_for);
	for (size_t i = x->move_count; part == PART_ENGINES && i-- > 0;) /* the newest first */
		tell_move(x, &x->moves[i], out);
	if (part == PART_ENGINES && x->share_rule && *x->share_rule)
		tell_rule(x, out);
}

struct explanation explain_decision(const struct explained *x, struct arena *a)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct explanation out = { .count = 0 };

	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
		buf_clear(&text);
		tell(x, (enum part)i, &text);
		if (text.len)
			out.parts[out.count++] =
				(struct explanation_part){ titles[i], arena_strdup(a, text.text, text.len) };
	}
	return out;
}

const char *explain_headline(const struct explained *x, struct arena *a)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	tell(x, PART_DECIDED, &text);
	return arena_strdup(a, text.text, text.len);
}

/* --- incidents --- */

/* What took its time, and what came before it. */
static void tell_start(const struct incident *i, struct buf *out)
{
	static const char *const tiers[START_KIND_COUNT] = {
		[START_COLD] = "cold start", [START_WAKE] = "standby wake", [START_REFILL] = "standby refill",
		[START_RECLAIM] = "reclaim", [START_PLACE] = "pod start",   [START_ROUSE] = "engine wake",
	};
	bool is_elsewhere = strcmp(i->refused_group, i->group) != 0;
	bool is_known = i->group[0] && (size_t)i->start_kind < START_KIND_COUNT;

	if (is_known)
		buf_printf(out, "%s of %s in %s", tiers[i->start_kind], human_duration(i->start_age).text, i->group);
	else
		buf_text(out, "capacity on its way");
	if (i->refused_by == LIMIT_NONE)
		return;
	buf_text(out, i->refused_by == LIMIT_QUOTA	   ? " after a lack of quota"
		      : i->refused_by == LIMIT_UNAVAILABLE ? " that could not be asked for"
							   : " after a stock-out");
	if (is_elsewhere)
		buf_printf(out, " in %s", i->refused_group);
}

void explain_incident(const struct incident *i, struct buf *out)
{
	static const char *const words[] = {
		[LATE_BURST] = "demand beyond headroom",
		[LATE_STOCKOUT] = "stock-out",
		[LATE_QUOTA] = "no quota",
		[LATE_MAX] = "held by max",
		[LATE_BUDGET] = "held by the budget",
		[LATE_RATE] = "held by the limit of growth",
		[LATE_STALE] = "signals stale",
		[LATE_NOT_ACTING] = "only watched",
	};
	enum late_cause cause = incident_cause(i);
	bool is_refusal = cause == LATE_STOCKOUT || cause == LATE_QUOTA, has_start = i->group[0] != '\0';

	if (cause == LATE_STARTING || (is_refusal && has_start)) {
		tell_start(i, out);
	} else {
		buf_text(out, words[cause]);
		if (is_refusal && i->refused_group[0])
			buf_printf(out, " in %s", i->refused_group);
	}
	if (i->given_up)
		buf_printf(out, ", %lld start%s given up%s%s", (long long)i->given_up, i->given_up == 1 ? "" : "s",
			   i->given_up_group[0] ? " in " : "", i->given_up_group);
}

/* --- as JSON --- */

static void write_value(const struct field_info *f, int64_t value, struct buf *out)
{
	const char *name = strncmp(f->unit, "enum:", 5) ? NULL : field_enum_name(f->unit + 5, value);

	bool is_time = !strcmp(f->unit, "time");

	if (value == ABSENT || (is_time && !value)) {
		buf_text(out, "null");
	} else if (name) {
		json_write_text(name, out);
	} else if (is_time) {
		buf_text(out, "\"");
		explain_time_rfc3339(value, out);
		buf_text(out, "\"");
	} else {
		buf_printf(out, "%lld", (long long)value);
	}
}

static void write_fields(const struct pool_spec *pool, const struct record_info *info, const void *record,
			 struct buf *out)
{
	const int64_t *values = record;

	for (size_t i = 0; i < info->count; i++) {
		buf_printf(out, "%s\"%s\":", i ? "," : "", info->fields[i].name);
		write_value(&info->fields[i], explain_known(pool, &info->fields[i], values[i]), out);
	}
}

static void write_list(const struct pool_spec *pool, const char *name, const struct record_info *info,
		       const void *records, size_t count, struct buf *out)
{
	buf_printf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ",\n {" : "\n {");
		write_fields(pool, info, (const int64_t *)records + i * info->count, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_groups(const struct explained *x, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];

	buf_text(out, ",\n\"groups\":[");
	for (size_t i = 0; i < x->plan->group_count; i++) {
		const struct group_spec *g = i < pool->group_count ? &x->fleet->groups[pool->groups[i]] : NULL;

		buf_text(out, i ? ",\n {\"name\":" : "\n {\"name\":");
		json_write_text(g ? g->name : "?", out);
		if (g && !pool->is_unpriced)
			buf_printf(out, ",\"price_per_hour\":%lld,", (long long)g->price_per_hour);
		else
			buf_text(out, ",\"price_per_hour\":null,");
		write_fields(pool, &group_decision_info, &x->plan->groups[i], out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_input(const struct pool_spec *pool, const struct pool_snapshot *in, struct buf *out)
{
	buf_text(out, ",\n\"input\":{");
	write_fields(pool, &pool_input_info, &in->input, out);
	write_list(pool, "scrapes", &scrape_input_info, in->scrapes, in->scrape_count, out);
	write_list(pool, "groups", &group_input_info, in->groups, in->group_count, out);
	write_list(pool, "starts", &start_input_info, in->starts, in->start_count, out);
	write_list(pool, "events", &event_input_info, in->events, in->event_count, out);
	write_list(pool, "deadlines", &deadline_input_info, in->deadlines, in->deadline_count, out);
	buf_text(out, "}");
}

static void write_units(struct buf *out)
{
	static const struct record_info *const infos[] = { &pool_decision_info,	  &group_decision_info,
							   &objective_price_info, &pool_input_info,
							   &scrape_input_info,	  &group_input_info,
							   &start_input_info,	  &event_input_info,
							   &deadline_input_info,  NULL };

	buf_text(out, ",\n\"units\":{");
	for (size_t i = 0; infos[i]; i++) {
		buf_printf(out, "%s\n \"%s\":{", i ? "," : "", infos[i]->name);
		for (size_t f = 0; f < infos[i]->count; f++)
			buf_printf(out, "%s\"%s\":\"%s\"", f ? "," : "", infos[i]->fields[f].name,
				   infos[i]->fields[f].unit);
		buf_text(out, "}");
	}
	buf_text(out, "}");
}

static void write_explanation(const struct explained *x, struct buf *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct explanation e = explain_decision(x, &scratch);

	buf_text(out, ",\n\"explanation\":[");
	for (size_t i = 0; i < e.count; i++) {
		buf_text(out, i ? ",\n {\"title\":" : "\n {\"title\":");
		json_write_text(e.parts[i].title, out);
		buf_text(out, ",\"text\":");
		json_write_text(e.parts[i].text, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void explain_json_members(const struct explained *x, const struct pool_snapshot *input, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];

	buf_text(out, "\"decision\":{");
	write_fields(pool, &pool_decision_info, &x->plan->decision, out);
	buf_text(out, "}");
	write_groups(x, out);
	write_list(pool, "prices", &objective_price_info, x->plan->prices, x->plan->price_count, out);
	if (input)
		write_input(pool, input, out);
	write_units(out);
	write_explanation(x, out);
}

void explain_json(const struct explained *x, const struct pool_snapshot *input, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];

	buf_text(out, "{\"pool\":");
	json_write_text(pool->name, out);
	buf_text(out, ",\"namespace\":");
	json_write_text(pool->namespace, out);
	buf_printf(out, ",\"tick\":%lld,\"at\":\"", (long long)x->tick);
	explain_time_rfc3339(x->now, out);
	buf_printf(out, "\",\"objective_wait\":%lld,\n", (long long)pool->objective_wait);
	explain_json_members(x, input, out);
	buf_text(out, "}\n");
}
