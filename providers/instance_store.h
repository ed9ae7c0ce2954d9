/*
 * What a machine on EC2 does when it starts, as far as its user data says where its disks lie: a shell script, a
 * NodeConfig of nodeadm (https://awslabs.github.io/amazon-eks-ami/nodeadm/), or several in MIME. An instance store is
 * empty after a stop. Nothing else of the text is kept or shown: it may hold secrets. Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"

enum { USER_DATA_MOST = 16 * 1024 }; /* bytes, as EC2 takes them */

enum disk_use {
	DISKS_KEPT,   /* nothing says that instance stores are used */
	DISKS_BESIDE, /* they are mounted; images are elsewhere */
	DISKS_IMAGES, /* images lie on them */
};

struct instance_store {
	enum disk_use use;
	char by[48]; /* what says so, in words that are ours: "localStorage.strategy RAID0"; "": nothing does */
};

/* Of the base64 of it, as launch templates hold it; ERROR_INVALID for what EC2 and nodeadm could not read either. */
bool instance_store_read(const char *text, size_t len, struct arena *a, struct instance_store *out,
			 struct error *e) MUST_USE;
