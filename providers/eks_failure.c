#include "base/decode.h"
#include "providers/eks_describe.h"

#include <string.h>

struct details_text {
	const char *zone;
};

static const struct field details_fields[] = { FIELD(struct details_text, zone, FIELD_STRING, "Availability Zone") };
static const struct record_spec details_record = { "", sizeof(struct details_text), details_fields, 1 };

enum error_kind eks_failure_kind(const char *code, const char *message, millis *back_off)
{
	static const struct {
		const char *text;
		enum error_kind kind;
		millis back_off;
	} texts[] = {
#define EKS_FAILURE(text, kind, back_off) { text, kind, back_off },
#include "providers/eks_failure.def"
#undef EKS_FAILURE
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcasestr(code, texts[i].text) || strcasestr(message, texts[i].text)) {
			if (back_off)
				*back_off = texts[i].back_off;
			return texts[i].kind;
		}
	if (back_off)
		*back_off = 0;
	return ERROR_UNAVAILABLE;
}

static const char *zone_of(const struct eks_activity *y, struct arena *a)
{
	struct decode_plan *plan = decode_plan_new(&details_record);
	struct details_text t = { 0 };
	struct error ignored;
	bool ok = *y->details && decode_record(plan, y->details, strlen(y->details), a, &t, &ignored);

	decode_plan_free(plan);
	return ok && t.zone ? t.zone : "";
}

static bool is_of_type(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* "p5.48xlarge" in "We currently do not have sufficient p5.48xlarge capacity". */
static const char *type_of(const char *text, struct arena *a)
{
	for (const char *p = text; *p;) {
		size_t all = 0;
		while (is_of_type(p[all]))
			all++;
		size_t len = all && p[all - 1] == '.' ? all - 1 : all;
		const char *dot = memchr(p, '.', len);
		if (dot && dot > p + 1 && *p >= 'a' && *p <= 'z' && dot + 3 < p + len &&
		    (strncmp(p + len - 5, "large", 5) == 0 || strncmp(dot + 1, "metal", 5) == 0))
			return arena_strdup(a, p, len);
		p += all + (p[all] != '\0');
	}
	return "";
}

/* Activities have names, not numbers; two that end in the same millisecond are told apart as well as can be. */
static int64_t number_of(const struct eks_activity *y, millis at)
{
	uint64_t hash = 14695981039346656037U;

	for (const char *p = y->id; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211U;
	return at * 1024 + (int64_t)(hash % 1024);
}

static millis time_of(const struct eks_activity *y)
{
	return y->ended_at > 0 ? y->ended_at : y->started_at;
}

static bool is_failed_launch(const struct eks_activity *y)
{
	return strcmp(y->status, "Failed") == 0 && strncasecmp(y->description, "Launching", 9) == 0 && time_of(y) > 0 &&
	       time_of(y) <= INT64_MAX / 2048;
}

int64_t eks_newest_failure(const struct eks_activity *items, size_t count)
{
	int64_t newest = 0;

	for (size_t i = 0; i < count; i++)
		if (is_failed_launch(&items[i]) && number_of(&items[i], time_of(&items[i])) > newest)
			newest = number_of(&items[i], time_of(&items[i]));
	return newest;
}

bool eks_read_failure(const struct eks_activity *y, struct arena *a, struct launch_failure *out)
{
	millis at = time_of(y), back_off;
	const char *text = *y->message ? y->message : y->description;

	if (!is_failed_launch(y))
		return false;
	enum error_kind kind = eks_failure_kind(y->description, y->message, &back_off);
	*out = (struct launch_failure){ .id = number_of(y, at),
					.at = at,
					.kind = kind,
					.message = text,
					.count = 1,
					.zone = zone_of(y, a),
					.instance_type = type_of(text, a),
					.back_off = back_off };
	return true;
}
