/*
 * What our credentials may do, found without changing anything. EC2 Auto Scaling and EKS have no dry run. But they ask
 * for the permission before they look at what is asked for, so a request that can have no effect (a negative size, no
 * machine, more at least than at most) tells: AccessDenied, or a complaint about the request, which is then granted.
 * Here stand the requests and what their answers mean; eks.c sends them.
 */
#pragma once
#include "providers/aws/call.h"
#include "providers/eks_wire.h"

/* The group that is asked about, as far as it is known. */
struct eks_probed {
	const struct eks_settings *settings;
	const char *group; /* name of the Auto Scaling group; NULL: not known yet */
	const struct eks_group *seen;
	bool tells_by_template, is_block; /* a launch template tells of its machines; they stand in a Capacity Block */
};

/* OF_NOTHING names what does not exist: policies that are bound to tags deny it whatever they grant. */
enum eks_probe_is { OF_GROUP = 1, OF_LAUNCHES = 2, OF_NOTHING = 4, OF_BLOCK = 8, OF_NEW = 16 };
/* What its answer tells beside the permission, for the probes that follow. */
enum eks_probe_tells { TELLS_NOTHING, TELLS_NODEGROUP, TELLS_GROUP };

struct eks_probe {
	const char *action;
	enum aws_service service;
	unsigned is; /* of enum eks_probe_is */
	enum permission_need need;
	void (*path)(const struct eks_settings *s, struct buf *out); /* of EKS; NULL: "/" */
	void (*body)(const struct eks_probed *of, struct buf *out);  /* NULL: it is a GET */
	enum eks_probe_tells tells;
	const char *purpose;
};

enum { EKS_PROBES = 16 };
const struct eks_probe *eks_probe_at(size_t i); /* NULL beyond the last */
/* Whether the permission is needed at all as the group and its settings are. */
bool eks_probe_applies(const struct eks_probe *p, const struct eks_probed *of);
/* Whether it can be asked for: some need the group's name. */
bool eks_probe_is_possible(const struct eks_probe *p, const struct eks_probed *of);
/* What an error (ERROR_NONE: none) in answer to it means; message: with it, "" or the error's own. */
enum permission_state eks_probe_judge(const struct eks_probe *p, const struct error *e, const char **message);
