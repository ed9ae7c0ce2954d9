/* Where user data puts images: texts as nodeadm's documents, eksctl, Terraform and Amazon Linux 2 have them, and what
 * is none. */
#include "providers/instance_store.h"
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define NODE_CONFIG(storage)                                                \
	"---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n" \
	"  cluster:\n    name: prod\n    certificateAuthority: Y2E=\n" storage
#define INSTANCE(storage) "  instance:\n    localStorage:\n" storage
#define RAID0		  INSTANCE("      strategy: RAID0\n")
#define MIME(boundary, parts) \
	"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" boundary "\"\n\n" parts "--" boundary "--\n"
#define PART(boundary, type, body) "--" boundary "\nContent-Type: " type "\n\n" body "\n"
#define OF_NODEADM		   "application/node.eks.aws"
#define SCRIPT			   "text/x-shellscript; charset=\"us-ascii\""

static const struct {
	const char *text;
	enum disk_use use;
	const char *by;
} cases[] = {
	/* nothing, and nothing of disks */
	{ "", DISKS_KEPT, "" },
	{ "#!/bin/bash\necho hello\n", DISKS_KEPT, "" },
	{ NODE_CONFIG(""), DISKS_KEPT, "" },
	{ "{not: yaml", DISKS_KEPT, "" },
	{ "\x00\x01\xff", DISKS_KEPT, "" },
	/* NodeConfig, alone */
	{ NODE_CONFIG(RAID0), DISKS_IMAGES, "localStorage.strategy RAID0" },
	{ NODE_CONFIG(INSTANCE("      strategy: RAID10\n")), DISKS_IMAGES, "localStorage.strategy RAID10" },
	{ NODE_CONFIG(INSTANCE("      strategy: Mount\n      mountPath: /data\n")), DISKS_BESIDE,
	  "localStorage.strategy Mount" },
	{ NODE_CONFIG(INSTANCE("      strategy: RAID0\n      disabledMounts: [ PodLogs ]\n")), DISKS_IMAGES,
	  "localStorage.strategy RAID0" },
	{ NODE_CONFIG(INSTANCE("      strategy: RAID0\n      disabledMounts: [ Containerd ]\n")), DISKS_BESIDE,
	  "localStorage.strategy RAID0" },
	{ NODE_CONFIG(INSTANCE("      strategy: Whatever\n")), DISKS_KEPT, "" },
	{ NODE_CONFIG(INSTANCE("      strategy: [ RAID0 ]\n")), DISKS_KEPT, "" },
	{ "kind: Pod\nspec:\n" RAID0, DISKS_KEPT, "" },
	{ "{\"apiVersion\": \"node.eks.aws/v1alpha1\", \"kind\": \"NodeConfig\",\n \"spec\": {\"instance\": "
	  "{\"localStorage\": "
	  "{\"strategy\": \"RAID0\"}}}}",
	  DISKS_IMAGES, "localStorage.strategy RAID0" },
	/* in MIME, as EKS merges it: what comes last wins, member by member */
	{ MIME("//", PART("//", OF_NODEADM, NODE_CONFIG(RAID0)) PART("//", OF_NODEADM, NODE_CONFIG(""))), DISKS_IMAGES,
	  "localStorage.strategy RAID0" },
	{ MIME("//", PART("//", OF_NODEADM, NODE_CONFIG(RAID0))
			     PART("//", OF_NODEADM, NODE_CONFIG(INSTANCE("      strategy: Mount\n")))),
	  DISKS_BESIDE, "localStorage.strategy Mount" },
	{ MIME("B", PART("B", OF_NODEADM, NODE_CONFIG(RAID0)) PART(
			    "B", OF_NODEADM, NODE_CONFIG(INSTANCE("      disabledMounts:\n      - Containerd\n")))),
	  DISKS_BESIDE, "localStorage.strategy RAID0" },
	{ MIME("==B==", PART("==B==", SCRIPT, "#!/bin/bash\nsetup-local-disks raid0")), DISKS_IMAGES,
	  "setup-local-disks raid0" },
	{ "Content-Type: multipart/mixed;\r\n boundary=B\r\nMIME-Version: 1.0\r\n\r\n--B\r\nContent-Type: " OF_NODEADM
	  "\r\n\r\n" NODE_CONFIG(RAID0) "\r\n--B--\r\n",
	  DISKS_IMAGES, "localStorage.strategy RAID0" },
	{ "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: " OF_NODEADM
	  "\n\n" NODE_CONFIG(RAID0),
	  DISKS_IMAGES, "localStorage.strategy RAID0" },
	{ "Content-Type: " OF_NODEADM "\n\n" NODE_CONFIG(RAID0), DISKS_IMAGES, "localStorage.strategy RAID0" },
	/* scripts */
	{ "#!/bin/bash\nset -ex\n/etc/eks/bootstrap.sh prod --local-disks raid0 --use-max-pods false\n", DISKS_IMAGES,
	  "--local-disks raid0" },
	{ "#!/bin/bash\n/etc/eks/bootstrap.sh prod \\\n  --local-disks=\"raid0\"\n", DISKS_IMAGES,
	  "--local-disks raid0" },
	{ "#!/bin/bash\n/etc/eks/bootstrap.sh prod --local-disks mount\n", DISKS_BESIDE, "--local-disks mount" },
	{ "#!/bin/bash\n# --local-disks raid0\nfoo # setup-local-disks raid0\n", DISKS_KEPT, "" },
	{ "#!/bin/bash\nfoo && sudo /usr/bin/setup-local-disks --dir /x raid10; bar\n", DISKS_IMAGES,
	  "setup-local-disks raid10" },
	{ "#!/bin/bash\nsetup-local-disks raid0 --no-bind-containerd\n", DISKS_BESIDE, "setup-local-disks raid0" },
	{ "#!/bin/bash\nsetup-local-disks raid0 --no-bind-mounts\n", DISKS_BESIDE, "setup-local-disks raid0" },
	{ "#!/bin/bash\nsetup-local-disks raid0; other --no-bind-mounts\n", DISKS_IMAGES, "setup-local-disks raid0" },
	{ "#!/bin/bash\nsetup-local-disks none\nnot-setup-local-disks; raid0\n", DISKS_KEPT, "" },
	{ "#cloud-config\nruncmd:\n- [ setup-local-disks, raid0 ]\n", DISKS_KEPT, "" },
	{ "#cloud-config\nruncmd:\n- setup-local-disks raid0\n", DISKS_IMAGES, "setup-local-disks raid0" },
};

static void pack(const struct buf *text, struct buf *out)
{
	unsigned char room[64 * 1024];
	z_stream z = { .next_in = (unsigned char *)text->text, .avail_in = (uInt)text->len, .next_out = room };

	z.avail_out = sizeof room;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_append(out, room, sizeof room - z.avail_out);
	deflateEnd(&z);
}

/* As a template holds it: in base64, over it gzip or base64 once more, as Terraform's cloudinit_config does both. */
static void wrap(const struct buf *text, int how, struct buf *out)
{
	CLEANUP(buf_release) struct buf packed = { 0 }, twice = { 0 };
	const struct buf *inner = text;

	if (how & 1) {
		pack(inner, &packed);
		inner = &packed;
	}
	if (how & 2) {
		base64_write(inner->text, inner->len, &twice);
		inner = &twice;
	}
	base64_write(inner->len ? inner->text : "", inner->len, out);
}

static void where_images_lie_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int how = 0; how < 4; how++) {
			CLEANUP(buf_release) struct buf text = { 0 }, wrapped = { 0 };
			struct arena a = { 0 };
			struct instance_store d = { 0 };
			struct error e = { 0 };
			buf_text(&text, cases[i].text);
			wrap(&text, how, &wrapped);
			buf_text(&wrapped, "");
			if (!instance_store_read(wrapped.text, wrapped.len, &a, &d, &e))
				fail_msg("case %zu, wrapped %d: %s", i, how, e.message);
			if (d.use != cases[i].use || strcmp(d.by, cases[i].by) != 0)
				fail_msg("case %zu, wrapped %d: %d by '%s'", i, how, (int)d.use, d.by);
			arena_release(&a);
		}
}

static void refused(const char *text, size_t len, const char *why)
{
	struct arena a = { 0 };
	struct instance_store d = { .use = DISKS_BESIDE };
	struct error e = { 0 };

	assert_false(instance_store_read(text, len, &a, &d, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	if (!strstr(e.message, why))
		fail_msg("%s", e.message);
	assert_int_equal(d.use, DISKS_BESIDE);
	arena_release(&a);
}

static void what_nobody_could_read_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ NODE_CONFIG("  instance: [\n"), "no YAML" },
		{ MIME("B", PART("B", OF_NODEADM, "{")), "no YAML" },
		{ "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--B\n", "without a boundary" },
		{ "\x1f\x8b\x08\x01\x02\x03", "damaged gzip" },
	};
	CLEANUP(buf_release) struct buf large = { 0 }, zeros = { 0 }, bomb = { 0 }, coded = { 0 };

	(void)state;
	refused("#!/bin/bash", 11, "no base64");
	refused("SGVsbG8", 7, "no base64");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CLEANUP(buf_release) struct buf b = { 0 };
		base64_write(bad[i].text, strlen(bad[i].text), &b);
		refused(b.text, b.len, bad[i].why);
	}
	for (size_t i = 0; i < USER_DATA_MOST + 1; i++)
		buf_text(&large, "#");
	base64_write(large.text, large.len, &coded);
	refused(coded.text, coded.len, "EC2 takes 16384");
	for (size_t i = 0; i < 300; i++)
		buf_append(&zeros, large.text, 4096);
	pack(&zeros, &bomb);
	buf_clear(&coded);
	base64_write(bomb.text, bomb.len, &coded);
	refused(coded.text, coded.len, "once unpacked");
	buf_clear(&bomb);
	buf_clear(&coded);
	pack(&large, &bomb);
	base64_write(bomb.text, bomb.len - 9, &coded);
	refused(coded.text, coded.len, "damaged gzip");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_images_lie_is_read),
		cmocka_unit_test(what_nobody_could_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
