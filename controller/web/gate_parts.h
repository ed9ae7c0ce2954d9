/* What the files of the gate share. */
#pragma once
#include "controller/web/gate.h"
#include "controller/web/gate_cache.h"

enum { GATE_PATH_LONGEST = 2048, GATE_VERB_LONGEST = 16 };

/* A request that waits for an answer of the API server. */
struct gate_asker {
	struct server_wait *wait;
	char verb[GATE_VERB_LONGEST];
	char *path;
	struct gate_asker *next;
};

/* What the API server is being asked, and who waits for it: each question once at a time. */
struct gate_question {
	struct gate *gate; /* NULL: closed in the meantime */
	struct sha256 key;
	struct gate_review review;
	struct gate_asker *askers;
	struct gate_question *next;
};

struct gate {
	struct gate_settings settings;
	unsigned char secret[32]; /* of the hashes: what is kept tells nobody a token */
	/* Apart, so that a flood of bad ones does not drive out the good. */
	struct gate_cache *known, *unknown, *allowed, *denied;
	struct gate_question *questions;
	size_t question_count;
	bool is_failing;
};

enum gate_finding { GATE_LETS, GATE_BARS, GATE_MUST_ASK };

/* What is known of a token; `who` is valid until the caches change. */
enum gate_finding gate_look_up_token(struct gate *g, const struct sha256 *key, const char **who);
struct sha256 gate_access_key(const struct gate *g, const char *who, const struct gate_asker *asker);
enum gate_finding gate_look_up_access(struct gate *g, const struct sha256 *key);
void gate_learn(struct gate *g, const struct gate_question *q);

/* Why not, for people: 401 the token is not known, 403 the access is not allowed, 503 nobody can be asked. */
void gate_refuse(int status, const struct gate_asker *asker, struct server_answer *a);
void gate_asker_free(struct gate_asker *a);

/*
 * Joins a question that is under way, or asks it. False: too many are. `r` says what is asked; the asker is the
 * question's from then on.
 */
bool gate_put(struct gate *g, const struct sha256 *key, const struct gate_review *r, struct gate_asker *asker) MUST_USE;
