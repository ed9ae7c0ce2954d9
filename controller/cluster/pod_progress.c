/* How far a pod is, and since when. */
#include "controller/cluster/model_inside.h"

#include <string.h>

static const struct {
	const char *reason;
	enum pod_trouble trouble;
} troubles[] = {
	{ "ErrImagePull", POD_IMAGE_PULL },	   { "ImagePullBackOff", POD_IMAGE_PULL },
	{ "RegistryUnavailable", POD_IMAGE_PULL }, { "SignatureValidationFailed", POD_IMAGE_PULL },
	{ "InvalidImageName", POD_IMAGE_NAME },	   { "ErrImageNeverPull", POD_IMAGE_NAME },
	{ "ImageInspectError", POD_IMAGE_NAME },   { "CreateContainerConfigError", POD_CONFIG },
	{ "CreateContainerError", POD_CONFIG },	   { "RunContainerError", POD_CONFIG },
	{ "CrashLoopBackOff", POD_CRASH_LOOP },
};

struct progress {
	enum pod_trouble trouble;
	const char *text;
	millis running_at; /* of the last container to start; 0 while one is missing */
	bool are_running;
};

static enum pod_trouble trouble_of(const char *reason)
{
	for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
		if (strcmp(troubles[i].reason, reason) == 0)
			return troubles[i].trouble;
	return POD_FINE;
}

static void look_for_trouble(struct progress *p, const struct decoded_list *statuses)
{
	const struct container_status_record *items = statuses->items;
	for (size_t i = 0; i < statuses->count; i++) {
		if (p->trouble != POD_FINE || items[i].waiting == NULL)
			continue;
		p->trouble = trouble_of(items[i].waiting);
		p->text = items[i].message;
	}
}

static struct progress containers_of(const struct pod_record *r)
{
	struct progress p = { 0 };
	const struct container_status_record *items = r->statuses.items;
	look_for_trouble(&p, &r->init_statuses);
	look_for_trouble(&p, &r->statuses);
	p.are_running = r->statuses.count > 0;
	for (size_t i = 0; i < r->statuses.count; i++) {
		p.are_running = p.are_running && items[i].running_at != 0;
		if (items[i].running_at > p.running_at)
			p.running_at = items[i].running_at;
	}
	return p;
}

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

static enum pod_state state_of(const struct pod_record *r, const struct progress *p)
{
	const struct condition_record *ready = condition_of(&r->conditions, "Ready");
	if (is_text(r->phase, "Succeeded") || is_text(r->phase, "Failed"))
		return POD_FINISHED;
	if (r->deleted_at != 0)
		return POD_TERMINATING;
	if (r->node_name == NULL || r->node_name[0] == '\0')
		return r->gates.count > 0 ? POD_GATED : POD_UNSCHEDULED;
	if (ready != NULL && is_text(ready->status, "True"))
		return POD_READY;
	if (p->trouble == POD_IMAGE_PULL || p->trouble == POD_IMAGE_NAME)
		return POD_PULLING;
	if (p->trouble == POD_CRASH_LOOP)
		return POD_CRASHING;
	return p->are_running ? POD_STARTED : POD_SCHEDULED;
}

/*
 * Once known a time stays: a replica that is ready for the second time was first ready then. Clocks differ, but no
 * stage takes less than nothing.
 */
static millis kept(millis before, bool has_happened, millis at, millis least)
{
	if (before != 0 || !has_happened)
		return before;
	return at < least ? least : at;
}

/* The object says when the grace ends. */
static millis deletion_asked(const struct pod_record *r)
{
	bool is_sane = r->deletion_grace > 0 && r->deletion_grace < r->deleted_at / SECOND;
	return is_sane ? r->deleted_at - r->deletion_grace * SECOND : r->deleted_at;
}

void pod_read_progress(struct cluster *c, struct pod *p, const struct pod_record *r, const struct watch_seen *seen)
{
	struct progress now = containers_of(r);
	const struct condition_record *scheduled = condition_of(&r->conditions, "PodScheduled");
	const struct condition_record *ready = condition_of(&r->conditions, "Ready");
	p->state = state_of(r, &now);
	if (p->state == POD_UNSCHEDULED && scheduled != NULL && is_text(scheduled->reason, "Unschedulable")) {
		now.trouble = POD_UNSCHEDULABLE;
		now.text = scheduled->message;
	}
	p->trouble = p->state == POD_READY || p->state == POD_FINISHED ? POD_FINE : now.trouble;
	intern_drop(&c->intern, p->trouble_text);
	size_t len = p->trouble == POD_FINE || now.text == NULL ? 0 : strnlen(now.text, 200);
	p->trouble_text = intern_bytes(&c->intern, len == 0 ? "" : now.text, len);

	bool has_node = r->node_name != NULL && r->node_name[0] != '\0';
	millis placed = model_moment(c, seen, scheduled == NULL ? 0 : scheduled->changed_at);
	millis started = model_moment(c, seen, now.running_at);
	millis served = model_moment(c, seen, ready == NULL ? 0 : ready->changed_at);
	millis going = model_moment(c, seen, deletion_asked(r));
	p->created_at = kept(p->created_at, true, model_moment(c, seen, r->created_at), 0);
	p->scheduled_at = kept(p->scheduled_at, has_node, placed, p->created_at);
	p->started_at = kept(p->started_at, now.are_running || p->state == POD_READY, started, p->scheduled_at);
	p->ready_at = kept(p->ready_at, p->state == POD_READY, served, p->started_at);
	p->terminating_at = kept(p->terminating_at, r->deleted_at != 0, going, p->created_at);
}
