#include "controller/loop/machine_cancel.h"

#include "base/alloc.h"
#include "base/decode.h"
#include "controller/loop/controller_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const millis READ_AGAIN = 5 * SECOND;

struct machine_cancel {
	struct machine_cancel *next;
	size_t group;
	char machine[MACHINE_ID_MAX + 1];
	enum provider_verb how;
	bool is_asked; /* of the read under way */
};

struct listed_node {
	const char *provider_id;
};

struct node_list {
	struct decoded_list nodes;
};

static const struct field node_fields[] = { FIELD(struct listed_node, provider_id, FIELD_STRING, "spec>providerID") };
static const struct record_spec node_record = { "", sizeof(struct listed_node), node_fields, 1 };
static const struct field list_fields[] = {
	{ .path = "items",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct node_list, nodes),
	  .of = &node_record,
	  .required = true },
};
static const struct record_spec list_record = { "", sizeof(struct node_list), list_fields, 1 };

void machine_cancel(struct controller *c, size_t group, const char *machine, enum provider_verb how)
{
	struct machine_cancel **at = &c->cancels.first;

	for (; *at; at = &(*at)->next)
		if ((*at)->group == group && !strcmp((*at)->machine, machine))
			return;
	*at = xnew(struct machine_cancel);
	**at = (struct machine_cancel){ .group = group, .how = how };
	snprintf((*at)->machine, sizeof(*at)->machine, "%s", machine);
	act_soon(c);
}

/* Only those that a read is about, unless `all`. */
static void forget(struct controller *c, bool all)
{
	for (struct machine_cancel **at = &c->cancels.first; *at;) {
		struct machine_cancel *m = *at;
		if (!all && !m->is_asked) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		free(m);
	}
}

static bool has_node(const struct node_list *list, const char *provider_id)
{
	const struct listed_node *nodes = list->nodes.items;

	for (size_t i = 0; i < list->nodes.count; i++)
		if (nodes[i].provider_id && !strcasecmp(nodes[i].provider_id, provider_id))
			return true;
	return false;
}

static void end_those_without_node(struct controller *c, const struct node_list *list)
{
	struct node_group *g = c->groups[c->cancels.group];

	for (const struct machine_cancel *x = c->cancels.first; x; x = x->next) {
		const struct machine *m = x->is_asked ? node_group_machine(g, x->machine) : NULL;
		if (!m || starts_know_machine(&c->starts, m->id))
			continue; /* it is gone, or somebody waits for it again */
		if (!has_node(list, m->provider_id)) {
			node_group_remove(g, m->id, x->how);
			continue;
		}
		log_info("machine-kept", LOG_S("machine", m->id),
			 LOG_S("why", "its node has joined, and the watch has not told yet"), LOG_END);
		node_group_keep(g, m->id);
	}
	node_group_drive(g);
}

static void nodes_read(struct api_call *call)
{
	struct controller *c = call->user;
	struct machine_cancels *s = &c->cancels;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct node_list list = { 0 };
	struct error e = call->error;
	struct decode_plan *plan = decode_plan_new(&list_record);

	s->is_reading = false;
	if (e.kind == ERROR_CANCELLED) {
		forget(c, true);
	} else if (e.kind == ERROR_NONE && decode_record(plan, call->response, call->response_len, &a, &list, &e)) {
		end_those_without_node(c, &list);
		forget(c, false);
		s->has_complained = false;
	} else {
		if (!s->has_complained)
			log_warn("nodes-not-read", LOG_E(&e), LOG_END);
		s->has_complained = true;
		s->quiet_until = loop_now(c->loop) + READ_AGAIN;
	}
	decode_plan_free(plan);
	act_soon(c);
}

/* A machine that wakes cannot be stopped before it runs, and by then its node may have joined: looked at only then. */
static bool may_end(const struct controller *c, const struct machine_cancel *x)
{
	const struct machine *m = node_group_machine(c->groups[x->group], x->machine);

	return !m || x->how != PROVIDER_STOP || m->state == MACHINE_RUNNING;
}

/* A list without a version is as new as the server's store. */
static void read_nodes(struct controller *c, size_t group)
{
	struct machine_cancels *s = &c->cancels;
	struct schema_label label = manifest_group_label(&c->manifest, group);
	CLEANUP(buf_release) struct buf selector = { 0 };

	s->group = group;
	for (struct machine_cancel *m = s->first; m; m = m->next)
		m->is_asked = m->group == group && may_end(c, m);
	buf_printf(&selector, "%s=%s", label.key, label.value);
	buf_clear(&s->path);
	api_object_path(&(struct api_object){ .api_version = "v1", .plural = "nodes" }, &s->path);
	api_query(&s->path, "labelSelector", selector.text);
	s->is_reading = true;
	s->read = (struct api_call){
		.path = s->path.text, .effect = API_READ, .cap = (size_t)64 << 20, .done = nodes_read, .user = c
	};
	api_start(c->api, &s->read);
}

static void stop(struct controller *c)
{
	if (c->cancels.is_reading)
		api_cancel(&c->cancels.read);
	else
		forget(c, true);
}

static void drive(struct controller *c)
{
	const struct machine_cancel *x = c->cancels.first;

	if (c->context.is_barred) {
		stop(c);
		return;
	}
	while (x && !may_end(c, x))
		x = x->next;
	if (x && !c->cancels.is_reading && loop_now(c->loop) >= c->cancels.quiet_until)
		read_nodes(c, x->group);
}

static bool is_idle(const struct controller *c)
{
	return !c->cancels.is_reading;
}

const struct actor machine_cancels_actor = { .drive = drive, .stop = stop, .is_idle = is_idle };
