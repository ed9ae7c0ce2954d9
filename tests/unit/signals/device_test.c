#include "signals/device.h"
#include "signals/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Two nodes: on n1 a replica, a GPU that it left free and one that fails; on n2 a slice that another pod holds. */
#define N1(gpu) "gpu=\"" gpu "\",UUID=\"GPU-n1" gpu "\",modelName=\"NVIDIA A10G\",Hostname=\"n1\""
#define HELD	N1("0") ",container=\"vllm\",namespace=\"llm\",pod=\"chat-0\""
#define SLICE                                                                                                \
	"gpu=\"0\",UUID=\"GPU-x\",GPU_I_PROFILE=\"1g.5gb\",GPU_I_ID=\"7\",hostname=\"n2\",namespace=\"ml\"," \
	"pod=\"job\""
static const char page[] =
	"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
	"# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
	"DCGM_FI_DEV_GPU_UTIL{" HELD "} 80\n"
	"DCGM_FI_DEV_GPU_UTIL{" N1(
		"1") "} 0\n"
		     "DCGM_FI_PROF_GR_ENGINE_ACTIVE{" HELD "} 0.615\n"
		     "DCGM_FI_DEV_FB_USED{" HELD "} 20000\n"
		     "DCGM_FI_DEV_FB_FREE{" HELD "} 3000\n"
		     "DCGM_FI_DEV_FB_USED{" N1(
			     "1") ",container=\"\",namespace=\"\",pod=\"\"} 0\n"
				  "DCGM_FI_DEV_FB_FREE{" N1(
					  "1") "} 23000\n"
					       "DCGM_FI_DEV_FB_FREE{" N1(
						       "2") "} 23000\n"
							    "DCGM_FI_DEV_XID_ERRORS{" N1(
								    "1") "} 0\n"
									 "DCGM_FI_DEV_XID_ERRORS{" N1(
										 "2") "} 79\n"
										      "DCGM_FI_DEV_POWER_USAGE{" HELD
										      "} 123.456\n"
										      "DCGM_FI_DEV_SM_CLOCK{" HELD
										      "} 1500\n"
										      "DCGM_FI_PROF_GR_ENGINE_"
										      "ACTIVE{" SLICE "} 0.25\n"
										      "DCGM_FI_DEV_FB_FREE{" SLICE
										      "} 4000\n";

struct page_reader {
	struct device_list *list;
	const struct exposition_sample *sample;
	char room[8][256];
	size_t used;
};

static const char *const names[] = { "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_FB_USED",
				     "DCGM_FI_DEV_FB_FREE",  "DCGM_FI_DEV_POWER_USAGE",	      "DCGM_FI_DEV_XID_ERRORS",
				     "DCGM_FI_DEV_SM_CLOCK" };

static const char *label_of(const void *of, const char *name)
{
	struct page_reader *p = (struct page_reader *)(uintptr_t)of;
	struct exposition_slice value;
	char *room = p->room[p->used++ % 8];

	if (!exposition_label(p->sample, name, &value))
		return NULL;
	snprintf(room, sizeof p->room[0], "%.*s", (int)value.len, value.text);
	return room;
}

static bool on_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	struct page_reader *p = user;

	p->sample = s;
	return device_list_take(p->list, names[s->name], s->value, label_of, p, e);
}

static bool read_page(const char *text, struct device_list *l, struct error *e)
{
	struct page_reader p = { .list = l };
	struct exposition *x =
		exposition_open((struct exposition_names){ names, sizeof names / sizeof *names }, 1000, on_sample, &p);
	bool ok = exposition_feed(x, text, strlen(text), e) && exposition_finish(x, e);

	exposition_close(x);
	return ok;
}

static bool is_any_node(void *user, const char *node)
{
	return !user || !strcmp(user, node);
}

static bool is_chat(void *user, const char *namespace, const char *pod)
{
	(void)user;
	return !strcmp(namespace, "llm") && !strncmp(pod, "chat-", 5);
}

static void a_page_tells_of_its_gpus(void **state)
{
	struct device_list *l = device_list_new();
	struct error e = { 0 };

	(void)state;
	if (!read_page(page, l, &e))
		fail_msg("%s", e.message);
	struct devices d = device_list_show(l);
	assert_int_equal(d.count, 4);
	assert_string_equal(d.items[0].id, "GPU-n10");
	assert_string_equal(d.items[0].pod, "chat-0");
	assert_int_equal(d.items[0].value[DEVICE_USE], 615); /* the finer one */
	assert_int_equal(d.items[0].value[DEVICE_POWER], 123456);
	assert_int_equal(d.items[0].value[DEVICE_XID], DEVICE_UNKNOWN);
	assert_string_equal(d.items[1].pod, "");
	assert_int_equal(d.items[1].value[DEVICE_USE], 0);
	assert_string_equal(d.items[3].id, "GPU-x/7");
	assert_string_equal(d.items[3].node, "n2");
	assert_int_equal(d.items[3].value[DEVICE_USE], 250);
	device_list_free(l);
}

static void fragmentation_is_where_no_replica_fits(void **state)
{
	struct device_list *l = device_list_new();
	struct device_question q = { is_any_node, is_chat, NULL, 1 };
	struct error e = { 0 };
	char n1[] = "n1", n2[] = "n2";

	(void)state;
	assert_true(read_page(page, l, &e));
	struct devices d = device_list_show(l);
	struct device_sums s = device_sum(d, &q);
	assert_int_equal(s.devices, 4);
	assert_int_equal(s.held, 2);
	assert_int_equal(s.use_permille, (615 + 250) / 2);
	assert_int_equal(s.memory_used_mib, 20000);
	assert_int_equal(s.memory_free_mib, 53000);
	assert_int_equal(s.replica_mib, 20000);
	assert_int_equal(s.failing, 1);
	assert_int_equal(s.last_xid, 79);
	assert_int_equal(s.stranded_permille, 7000 * 1000 / 53000); /* beside the replica, and the slice */
	q.user = n1;
	q.gpus_per_replica = 2;
	assert_int_equal(device_sum(d, &q).stranded_permille, 3000 * 1000 / 49000);
	q.gpus_per_replica = 3; /* two are free: none fits */
	assert_int_equal(device_sum(d, &q).stranded_permille, 1000);
	q.user = n2;
	q.gpus_per_replica = 1;
	assert_int_equal(device_sum(d, &q).stranded_permille, 1000);
	s = device_sum((struct devices){ 0 }, &q);
	assert_int_equal(s.devices, 0);
	assert_int_equal(s.use_permille, DEVICE_UNKNOWN);
	assert_int_equal(s.stranded_permille, DEVICE_UNKNOWN);
	device_list_free(l);
}

/* By way of Prometheus the exporter's own pod may stand where the holder's was. */
static void the_exporters_own_pod_holds_nothing(void **state)
{
	static const char told[] =
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"a\",Hostname=\"n\",namespace=\"gpu\",pod=\"nvidia-dcgm-exporter-x\"} 0\n"
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"b\",Hostname=\"n\",namespace=\"gpu\",pod=\"nvidia-dcgm-exporter-x\","
		"exported_namespace=\"llm\",exported_pod=\"chat-1\"} 50\n";
	struct device_list *l = device_list_new();
	struct error e = { 0 };

	(void)state;
	assert_true(read_page(told, l, &e));
	struct devices d = device_list_show(l);
	assert_int_equal(d.count, 2);
	assert_string_equal(d.items[0].pod, "");
	assert_string_equal(d.items[1].namespace, "llm");
	assert_string_equal(d.items[1].pod, "chat-1");
	device_list_free(l);
}

static void values_that_cannot_be_are_named(void **state)
{
	static const char *const values[] = { "NaN", "-1", "101", "+Inf", "x" };

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		char text[128];
		struct device_list *l = device_list_new();
		struct error e = { 0 };
		snprintf(text, sizeof text, "DCGM_FI_DEV_GPU_UTIL{UUID=\"a\"} %s\n", values[i]);
		if (read_page(text, l, &e) || !strstr(e.message, "cannot be"))
			fail_msg("%s: %s", values[i], e.message);
		assert_int_equal(device_list_show(l).count, 0);
		device_list_free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_tells_of_its_gpus),
		cmocka_unit_test(fragmentation_is_where_no_replica_fits),
		cmocka_unit_test(the_exporters_own_pod_holds_nothing),
		cmocka_unit_test(values_that_cannot_be_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
