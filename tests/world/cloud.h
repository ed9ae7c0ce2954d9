/*
 * A cloud as a world plays it: groups of machines that take their time, run
 * out, and lose answers, behind the wires of the providers `simulated`, `eks`
 * (cloud_eks.c) and `aks` (cloud_aks.c).
 */
#pragma once
#include "tests/world/wire.h"

#define CLOUD	  "http://cloud.world"
#define CLOUD_AWS "https://world.amazonaws.com"
#define CLOUD_ARM "https://management.azure.com"
/* What the ids of AKS's machines begin with, in providerIDs too. */
#define CLOUD_AKS_MACHINES                                                                                   \
	"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/mc/providers/Microsoft.Compute/" \
	"virtualMachineScaleSets/"

enum cloud_wire { CLOUD_SIMULATED, CLOUD_EKS, CLOUD_AKS };

enum machine_step { STEP_PENDING, STEP_RUNNING, STEP_STOPPING, STEP_STOPPED, STEP_WAKING, STEP_TERMINATING };

struct cloud_machine {
	struct cloud_machine *next;
	struct cloud_group *group;
	char id[48], token[80];
	char replaces[48]; /* in whose place an owner, or who balances zones, launched it; "": in nobody's */
	size_t zone;	   /* of its group's */
	enum machine_step step;
	bool is_to_run; /* else it is, or will be, stopped */
	bool was_stopped, is_instant, is_taken;
	bool is_recommended; /* spot: to be replaced, as it may be taken soon */
	bool has_run;	     /* else its first start is that of a new one, though it was stopped */
	bool was_to_run;     /* it was bought or woken to serve */
	bool is_spared;	     /* cancelled too late */
	bool was_named;	     /* to end, and the size fell for it */
	bool never_registers, has_no_device;
	bool is_protected;	     /* from scale-in */
	millis launched, since, due; /* of wire_now(); due 0: the step does not end by itself */
	millis woken;		     /* when it was last asked to serve out of standby; 0: never */
	millis held_until;	     /* by a lifecycle hook, with power: its node joins meanwhile; 0: it is not held */
	millis powered_until;	     /* by a lifecycle hook, though it ends: its node serves on; 0: it is not held */
};

/* Of the next calls or launches; -1: until told otherwise. */
struct cloud_faults {
	int stock_out, quota; /* machines */
	bool at_once;	      /* those two are told in the answer */
	int lost_answer, hang, throttle, server_error, auth;
	int no_device, never_registers;
	int no_effect, one_less, one_more; /* growths that are accepted and do nothing, or one less, or one more */
	int half_answer;		   /* reads of which the end is missing */
	unsigned dry_zones;		   /* bits: where nothing is to be had, while others have some */
	millis fails_after;		   /* launches that fail do so later than after 10 s; 0: then */
};

/* How old a read is: so old, or up to that, in any order. */
struct cloud_reads {
	millis lag;
	bool is_any_order;
};

enum { CLOUD_FAILURES = 50, CLOUD_TOKENS = 512, CLOUD_ZONES = 3 };
#define CLOUD_OWNER "owner" /* token of machines that somebody else asked for */
#define CLOUD_WARM  "warm"  /* of those that a warm pool bought by itself */
#define CLOUD_RETRY "again" /* of those that the cloud launched by itself in place of others */
#define CLOUD_ZONED "zones" /* of those that it launched to balance zones: AZRebalance */

/* Of a group on EKS: it keeps max(least, prepared - desired) machines stopped, by itself. */
struct cloud_warm_pool {
	bool exists, reuses;	 /* reuses: what a lower size ends goes there, while there is room */
	int64_t least, prepared; /* prepared -1: up to the group's max */
};

/* Of each of its nodes, as the cloud was configured: a label, or a taint where there is an effect ("NoSchedule"). */
struct cloud_mark {
	const char *key, *value, *effect;
	bool is_by_tag; /* EKS is told of it by a tag of the Auto Scaling group alone */
};

struct cloud_group {
	const char *name, *pool, *zone, *instance_type; /* zone: the first, or the only one */
	size_t zone_count;				/* on EKS; 0 is 1 */
	const struct cloud_mark *marks;			/* up to one without a key; NULL: none. On EKS and AKS */
	bool is_left_unbalanced;			/* there: AZRebalance is suspended */
	char balancing[48]; /* what AZRebalance launched, until it ended another; "": nothing */
	int64_t min, max, standby_max;
	int gpus;
	enum cloud_wire wire;
	bool launches;	    /* on EKS: by LaunchInstances */
	bool deallocates;   /* on AKS: what a lower count ends is stopped (scaleDownMode Deallocate) */
	bool deletes_named; /* there: deleteMachines deletes all the same */
	bool has_zones;	    /* there: several, and which machines a lower count ends nobody knows */
	bool is_spot;
	bool keeps_node;    /* of a stopped machine */
	bool has_azure_ids; /* a machine's id and the provider's ids of it and of its node have little in common */
	struct cloud_faults faults;
	struct cloud_reads reads;
	int64_t changes;     /* calls that were accepted */
	int64_t protections; /* calls that came, of those that protect machines */
	struct cloud_warm_pool warm;
	const char *busy_with; /* somebody else's operation; NULL: none */
	millis busy_since;
	millis moved_at;     /* when somebody else first moved its size or ended a machine in that; 0: not yet */
	bool ends_old_first; /* an update by EKS does: updateStrategy MINIMAL */
	size_t unavailable;  /* maxUnavailable of EKS: machines that an update empties at once; 0: one */
	bool only_grows;     /* an owner replaces its machines, and tells so */
	const char *ailment; /* NULL: none */
	millis ends_at;	     /* of wire_now(): its reservation does, as a Capacity Block; 0: never */
	bool protects;	     /* machines from being chosen when others lower the size */
	bool protects_new;   /* by its own setting: what comes into service is protected */
	bool is_scaling_in;  /* they did */
	struct {
		bool is_schedule;
		int64_t from, to;
		millis at;	  /* of wire_now(); 0: nobody else ever set it */
		millis shown_at;  /* the first read that showed it; 0: none yet */
		millis unwatched; /* between the last read before it and the first after it */
	} resized;		  /* by somebody else, last */
	millis read_at;		  /* last, as of wire_now() */
	millis hook;		  /* what is launched is held so long by a lifecycle hook, and boots only then */
	millis hook_beside;	  /* or boots meanwhile */
	bool hook_abandons;	  /* and ends what it held */
	millis end_hook;	  /* what ran and ends is held so long by a lifecycle hook, with power */
	bool has_ended;		  /* its reservation, as far as the schedule goes */
	int64_t desired, standby;
	struct cloud_machine *machines;
	/* launches that will turn out to fail */
	struct cloud_refusal {
		int64_t count;
		bool is_to_run, is_quota;
		millis due;
	} refusals[CLOUD_FAILURES];
	size_t refusal_count;
	struct cloud_failure {
		int64_t id, count;
		millis at;
		size_t zone;
		bool is_quota, is_abandoned;
	} failures[CLOUD_FAILURES];
	int64_t failure_count; /* since the beginning; the last are kept */
	int64_t sequence;
	int64_t bought;
	/* On EKS what is missing is tried for again and again; on AKS the pool fails. */
	struct cloud_operation {
		int64_t number;
		const char *state; /* "Scaling"; NULL: none ever was */
		millis ends;	   /* 0: when its machines run */
		bool is_over, has_failed;
	} operation;	       /* of AKS, one at a time */
	bool cluster_upgrades; /* of AKS: no pool of the cluster takes anything meanwhile, and none shows why */
	int64_t put_off;       /* calls that were told to wait for it */
	struct cloud_past *past;
};

/* A call that would change a group. */
struct cloud_call {
	millis at;
	int from;
	struct cloud_group *group;
	const char *verb, *token;
	int64_t asked;	  /* a size; -1: none was told */
	int64_t launches; /* of a growth: so many, whatever there is beyond the size; 0: as many as the size lacks */
	size_t zone;	  /* where those are launched */
	const char *const *ids;
	size_t id_count;
	struct cloud_warm_pool warm;	   /* of "standby", on EKS: what it shall be */
	long status;			   /* 0: not yet done */
	bool is_repeat, is_lost, is_again; /* again: the network delivered it twice */
	int64_t launched, woken, ended;
};

void cloud_begin(uint64_t seed);
void cloud_end(void);
struct cloud_group *cloud_add(const struct cloud_group *settings, int64_t initial);
struct cloud_group *cloud_group_at(size_t i);				       /* NULL beyond the last */
struct cloud_group *cloud_group_named(const char *name, enum cloud_wire wire); /* NULL: there is none */
struct cloud_machine *cloud_find(const char *id);
void cloud_advance(void); /* what is due happens */
/* Told before a call has its effect (status 0) and after. */
void cloud_on_call(void (*called)(const struct cloud_call *c));
void cloud_told_gone(void (*gone)(struct cloud_machine *m)); /* before it is forgotten */
int64_t cloud_warm_size(const struct cloud_group *g);
int64_t cloud_awake(const struct cloud_group *g);    /* run or will, and do not end */
bool cloud_is_held(const struct cloud_machine *m);   /* runs, and is not in service yet */
bool cloud_has_power(const struct cloud_machine *m); /* its node is up: it runs, or a hook holds its end */
void cloud_complete_hooks(struct cloud_group *g);    /* of machines that end */
/* Somebody else sets the size; what is too much ends, the newest first. */
void cloud_owner_sets(struct cloud_group *g, int64_t size);
/* The same by a scheduled action, of which the cloud tells. */
void cloud_owner_schedules(struct cloud_group *g, int64_t size);
/* Somebody else begins an operation there, or ends it (NULL); only AKS refuses ours for it. */
void cloud_owner_is_busy(struct cloud_group *g, const char *with);
/* Somebody else ends a machine and has it replaced, at the same size: after the one in its place was asked for. */
void cloud_owner_replaces(struct cloud_machine *m);
/* Another image for it: away for a while, then there again under the same name. */
void cloud_owner_reimages(struct cloud_machine *m);
/* One more than the size asks for: whoever replaces begins so, and ends another later. */
struct cloud_machine *cloud_owner_adds(struct cloud_group *g, const struct cloud_machine *in_place_of);
void cloud_owner_ends(struct cloud_machine *m);	       /* without a change of the size */
void cloud_owner_removes(struct cloud_machine *m);     /* and lowers the size by one */
int64_t cloud_owned(const struct cloud_group *g);      /* machines alive that somebody else asked for */
void cloud_take(struct cloud_group *g, int64_t count); /* spot: a notice of two minutes */

/* For the wires. */

/* Does a call and tells of it, before and after; 202, or the status and code of a refusal. */
long cloud_change(struct cloud_call *c, const char *signature, const char **code);
/* The group as a read shows it. Valid until the next call of any of these. */
const struct cloud_group *cloud_shown(struct cloud_group *g);
/* Answers as a fault wants it, with what the wire says then; whether one did. */
bool cloud_spoils(struct wire_call *c, struct cloud_group *g,
		  void (*refuse)(struct wire_call *c, long status, const char *code));
void cloud_forget_past(struct cloud_group *g);
void cloud_note_past(struct cloud_group *g); /* each second, and around each change */

/* cloud_zones.c */
const char *cloud_zone_name(const struct cloud_group *g, size_t zone);
size_t cloud_zone_count(const struct cloud_group *g);
bool cloud_zone_is_dry(const struct cloud_group *g, size_t zone);
/* Machines of each zone that run or will, and do not end. */
void cloud_zone_load(const struct cloud_group *g, int64_t load[CLOUD_ZONES]);
/* Where Auto Scaling launches: what has fewest first; of those that have none it tells. */
size_t cloud_zone_to_fill(struct cloud_group *g, bool is_to_run);
void cloud_balance_zones(struct cloud_group *g);
int64_t cloud_balancing(const struct cloud_group *g); /* machines there are beyond the size for that */
struct cloud_machine *cloud_launch(struct cloud_group *g, bool is_to_run, const char *token, size_t zone);
struct cloud_machine *cloud_choose_to_end(struct cloud_group *g); /* NULL: all are protected */
void cloud_note_failure(struct cloud_group *g, const struct cloud_failure *f);

void cloud_eks_begin(void);
void cloud_aks_begin(void);
/* Of one machine and stage, the same whenever it is asked for. */
/* As the cloud says it, or as its node does. */
void cloud_provider_id(const struct cloud_machine *m, bool on_node, char out[256]);
int64_t cloud_aks_number(const struct cloud_machine *m); /* in its scale set */
millis cloud_delay(const struct cloud_machine *m, const char *stage, millis p50, millis p95);
