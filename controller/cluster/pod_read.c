/* What a pod object says, apart from how far it is. */
#include "controller/cluster/model_inside.h"

#include "base/decimal.h"
#include "base/quantity.h"

#include <stdio.h>
#include <string.h>

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

static void read_owner(struct cluster *c, struct pod *p, const struct pod_record *r)
{
	const struct owner_record *owners = r->owners.items;
	p->owner = NULL;
	p->kind = POD_BARE;
	for (size_t i = 0; i < r->owners.count; i++) {
		const struct owner_record *o = &owners[i];
		if (!o->is_controller || o->kind == NULL || o->name == NULL || o->uid == NULL)
			continue;
		struct pod_owner row = { intern_text(&c->intern, o->kind), intern_text(&c->intern, o->name),
					 intern_text(&c->intern, o->uid) };
		p->owner = intern_rows(&c->intern, INTERN_OWNER, &row, 1);
		intern_drop(&c->intern, row.kind);
		intern_drop(&c->intern, row.name);
		intern_drop(&c->intern, row.uid);
		p->kind = is_text(o->kind, "DaemonSet") ? POD_DAEMON
			  : is_text(o->kind, "Node")	? POD_STATIC
							: POD_REPLICATED;
		break;
	}
	if (decoded_get(&r->annotations, "kubernetes.io/config.mirror") != NULL)
		p->kind = POD_STATIC;
	else if (is_text(decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/daemonset-pod"), "true"))
		p->kind = POD_DAEMON;
}

/* Whether a comma-separated list holds the name. */
static bool lists(const char *list, const char *name)
{
	size_t len = strlen(name);
	while (list != NULL && *list != '\0') {
		list += strspn(list, ", ");
		if (strncmp(list, name, len) == 0 && (list[len] == '\0' || list[len] == ',' || list[len] == ' '))
			return true;
		list = strchr(list, ',');
	}
	return false;
}

static bool is_in_memory(const struct volume_record *v)
{
	static const char memory[] = "\"Memory\"";
	return v->empty_dir.text != NULL &&
	       memmem(v->empty_dir.text, v->empty_dir.len, memory, sizeof memory - 1) != NULL;
}

static bool has_local_storage(const struct pod_record *r)
{
	const char *excused =
		decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes");
	const struct volume_record *volumes = r->volumes.items;
	for (size_t i = 0; i < r->volumes.count; i++) {
		bool is_local = volumes[i].host_path.text != NULL ||
				(volumes[i].empty_dir.text != NULL && !is_in_memory(&volumes[i]));
		if (is_local && (volumes[i].name == NULL || !lists(excused, volumes[i].name)))
			return true;
	}
	return false;
}

static int whole_or(const char *text, int otherwise)
{
	int64_t value = 0;
	bool is_negative = text != NULL && text[0] == '-';
	if (text == NULL || decimal_parse(text + is_negative, strlen(text + is_negative), 0, &value) != DECIMAL_OK ||
	    value > INT32_MAX)
		return otherwise;
	return is_negative ? (int)-value : (int)value;
}

static void read_wishes(struct pod *p, const struct pod_record *r)
{
	const char *evict = decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict");
	const char *still = decoded_get(&r->annotations, "karpenter.sh/do-not-disrupt");
	millis duration = 0;
	p->evict = is_text(evict, "true")	     ? POD_EVICT_SAFE
		   : is_text(evict, "false")	     ? POD_EVICT_NEVER
		   : is_text(evict, "on-completion") ? POD_EVICT_ON_COMPLETION
						     : POD_EVICT_UNSAID;
	p->undisturbed_until = 0;
	if (is_text(still, "true"))
		p->undisturbed_until = INT64_MAX;
	else if (still != NULL && duration_parse(still, strlen(still), &duration) && duration < DAY * 3650)
		p->undisturbed_until = p->created_at + duration;
	p->has_local_storage = has_local_storage(r);
	p->deletion_cost = whole_or(decoded_get(&r->annotations, "controller.kubernetes.io/pod-deletion-cost"), 0);
	p->priority = (int)(r->priority > INT32_MAX ? INT32_MAX : r->priority < INT32_MIN ? INT32_MIN : r->priority);
	p->grace_seconds = r->grace < 0 ? 0 : r->grace > DAY ? (int)DAY : (int)r->grace;
}

static void read_gang(struct cluster *c, struct pod *p, const struct pod_record *r)
{
	static const struct {
		enum gang_kind kind;
		const char *label, *size;
	} marks[] = {
		{ GANG_KUEUE, "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count" },
		{ GANG_LEADER_WORKER_SET, "leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/size" },
		{ GANG_POD_GROUP, "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/min-available" },
		{ GANG_POD_GROUP, "pod-group.scheduling.sigs.k8s.io/name",
		  "pod-group.scheduling.sigs.k8s.io/min-available" },
		{ GANG_JOB_SET, "jobset.sigs.k8s.io/jobset-name", "" },
	};
	p->gang = NULL;
	p->gang_kind = GANG_NONE;
	p->gang_size = 0;
	for (size_t i = 0; p->gang == NULL && i < sizeof marks / sizeof marks[0]; i++) {
		const char *name = label_set_get(p->labels, marks[i].label);
		if (name == NULL || name[0] == '\0')
			continue;
		p->gang = intern_text(&c->intern, name);
		p->gang_kind = (int)marks[i].kind;
		p->gang_size = whole_or(decoded_get(&r->annotations, marks[i].size), 0);
	}
}

static const char *main_image(const struct pod_record *r)
{
	const struct container_record *items = r->containers.items;
	for (size_t i = 0; i < r->containers.count; i++) {
		const struct decoded_map *maps[] = { &items[i].requests, &items[i].limits };
		for (size_t m = 0; m < 2; m++)
			for (size_t k = 0; k < maps[m]->count; k++)
				if (device_is_gpu(maps[m]->pairs[k].key) && items[i].image != NULL)
					return items[i].image;
	}
	return r->containers.count > 0 && items[0].image != NULL ? items[0].image : "";
}

static bool asks_for_gpus(const struct pod *p)
{
	for (size_t i = 0; i < intern_count(p->shape->requests); i++)
		if (device_is_gpu(p->shape->requests->items[i].name))
			return true;
	return false;
}

void pod_read(struct cluster *c, struct pod *p, const struct pod_record *r, const struct watch_seen *seen)
{
	p->labels = model_labels(c, &r->labels);
	p->shape = pod_shape_of(c, r);
	p->image = intern_text(&c->intern, main_image(r));
	p->has_gpus = asks_for_gpus(p);
	p->is_placeholder = label_set_get(p->labels, "preheat.dev/placeholder") != NULL;
	read_owner(c, p, r);
	pod_read_progress(c, p, r, seen);
	read_wishes(p, r);
	read_gang(c, p, r);
	snprintf(p->ip, sizeof p->ip, "%s", r->ip == NULL ? "" : r->ip);
}
