/*
 * What a provider says of itself before it is opened: its block in a node group of the manifest with rules (C and CEL),
 * by which labels and taints the nodes of such a group are known, and the machines that its cloud sells. Pure; nothing
 * outside of providers/ says these things again.
 */
#pragma once
#include "base/schema_describe.h"

/* In the order of providers/list.def. */
enum provider_choice {
#define PROVIDER(name, key, help) PROVIDER_##name,
#include "providers/list.def"
#undef PROVIDER
	PROVIDER_COUNT
};

/* In the order of the manifest's capacity types. */
enum block_capacity { BLOCK_ON_DEMAND, BLOCK_SPOT, BLOCK_RESERVED, BLOCK_CAPACITIES };
enum { BLOCK_OWN_NAMES = 2 };

/* Room for the record of any provider: each begins with the map that it was read from. */
struct block_record {
	const struct yaml_node *node; /* NULL: not written */
	union {
		const char *text;
		int64_t number;
	} values[10];
};
#define BLOCK_FITS(type)	 _Static_assert(sizeof(type) <= sizeof(struct block_record), "room for the block")
#define BLOCK_KEYS(rows)	 .keys = (rows), .key_count = sizeof(rows) / sizeof *(rows)
#define BLOCK_RULES(rows)	 .rules = (rows), .rule_count = sizeof(rows) / sizeof *(rows)
#define BLOCK_INSTANCES(rows)	 .instances = (rows), .instance_count = sizeof(rows) / sizeof *(rows)
#define BLOCK_AT(record, member) .offset = offsetof(struct record, member)
#define BLOCK_LOWER		 "abcdefghijklmnopqrstuvwxyz"
#define BLOCK_DIGITS		 "0123456789"
#define BLOCK_LETTERS		 BLOCK_LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* The same twice: for us, and for the API server as a pattern of CEL. Of texts that are not empty. */
struct block_form {
	bool (*fits)(const char *text);
	const char *pattern;
};
extern const struct block_form form_cloud_name; /* letters, digits, - and _ */
extern const struct block_form form_dns_label;	/* small letters, digits, inner dashes */
extern const struct block_form form_object_name;
extern const struct block_form form_label_key; /* as Kubernetes has it: NAME, or DOMAIN/NAME */
extern const struct block_form form_label_value;

struct block_key {
	const char *key;
	const struct block_form *form;
	const char *allowed; /* "KEY must be ..." */
};

/* What the manifest says of the group around the block. */
struct block_group {
	const struct yaml_node *standby; /* the map; NULL: not written */
	bool has_standby;
	enum block_capacity capacity;
};

struct instance_type {
	const char *name;
	int64_t vcpus, memory_gib, gpus;
	const char *gpu;
	int64_t gpu_memory_gib;
	/* Micro-dollars an hour: on demand, Linux, as the cloud published it in October 2025 for its first region; 0:
	 * none. A first guess for people to change, nothing decides by it. */
	int64_t list_price;
};

struct block_taint {
	const char *key, *value, *effect;
};

struct provider_block {
	struct schema_table table;
	bool is_trial; /* buys nothing: needed by nobody who only simulates */
	const struct block_key *keys;
	size_t key_count;
	const struct openapi_rule *rules; /* what `check` finds, in CEL */
	size_t rule_count;
	/* Contradictions within the block and with its group; NULL: none. */
	void (*check)(const void *record, const struct block_group *g, struct findings *f);
	/* The provider's own reading of its settings; NULL: the keys tell all. ERROR_INVALID: "KEY: found X; allowed:
	 * Y" */
	bool (*read)(const char *settings, struct arena *a, struct error *e);

	/* The label by which a group's nodes are known: its key, or where the record has the key; and the value. */
	struct {
		const char *key;
		size_t key_at, value_at;
	} label;
	/* Keys that name the group by what its nodes do not carry, and where the record has them; key NULL: no more. */
	struct {
		const char *key;
		size_t value_at;
	} own_names[BLOCK_OWN_NAMES];
	const char *old_label;			      /* also set, to the same value; NULL: none */
	bool sets_zone;				      /* topology.kubernetes.io/zone is the group's zone */
	const char *capacity_label;		      /* NULL: none */
	const char *capacity_words[BLOCK_CAPACITIES]; /* NULL: such nodes lack the label */
	bool reserves_on_demand;		      /* what is reserved may bear the word of on-demand */
	struct block_taint spot_taint;		      /* key NULL: none */
	const struct instance_type *instances;
	size_t instance_count;
	const char *arm_family; /* those of them that begin so are arm64, all others amd64; NULL: none */
	/* The object that is a template of nodes and is named as the label's value; NULL: none. */
	const char *template_group, *template_version, *template_kind, *template_plural, *template_title;
	bool drives_marked_nodes; /* its nodes carry the mark of an autoscaler that shares them with us */
};

#define PROVIDER(name, key, help) extern const struct provider_block provider_block_##name;
#include "providers/list.def"
#undef PROVIDER

const char *provider_name(enum provider_choice p);
const struct provider_block *provider_block(enum provider_choice p);
/* What is wrong with the block as it is written, and then what the provider itself refuses of it. */
void provider_block_check(enum provider_choice p, const struct block_record *r, const struct block_group *g,
			  struct findings *f);
/* The block as the provider reads it: an object of texts. */
const char *provider_settings(enum provider_choice p, const struct block_record *r, struct arena *a);
/* `group`: the name of the node group, where the block does not say another. */
struct schema_label provider_node_label(enum provider_choice p, const struct block_record *r, const char *group);
/* Key and value of such a name in the cloud, `i` below BLOCK_OWN_NAMES; a value of "": none is. */
struct schema_label provider_own_name(enum provider_choice p, const struct block_record *r, size_t i);
/* Rules of the block of every provider, keys' rules with them; texts live in the arena. */
const struct openapi_rule *provider_block_rules(struct arena *a, size_t *count);
/* "eks:, aks: or karpenter:": the blocks that buy machines, and those of trials, too. */
void provider_list_blocks(bool with_trials, struct buf *out);
