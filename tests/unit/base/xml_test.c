#include "base/xml.h"

#include "base/buf.h"
#include "base/millis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct child {
	const char *name;
	int64_t size;
};

struct sample {
	const char *title, *absent;
	int64_t size;
	bool is_there;
	millis at;
	struct xml_list children;
};

static const struct xml_field child_fields[] = {
	XML_NEEDED(struct child, name, XML_STRING, "Name"),
	XML_FIELD(struct child, size, XML_INT, "Size"),
};
static const struct xml_table child_table = XML_TABLE(struct child, child_fields);
static const struct xml_field sample_fields[] = {
	XML_NEEDED(struct sample, title, XML_STRING, "In>Title"),
	XML_FIELD(struct sample, absent, XML_STRING, "In>Absent"),
	XML_FIELD(struct sample, size, XML_INT, "Size"),
	XML_FIELD(struct sample, is_there, XML_BOOL, "There"),
	XML_FIELD(struct sample, at, XML_TIME, "At"),
	{ .path = "Children", .type = XML_LIST, .offset = offsetof(struct sample, children), .of = &child_table },
};
static const struct xml_table sample_table = XML_TABLE(struct sample, sample_fields);

static bool decode(const char *text, struct arena *a, struct sample *out, struct error *e)
{
	const struct xml_node *root;

	return xml_read(text, strlen(text), a, &root, e) && xml_decode(&sample_table, root, a, out, e);
}

static void a_document_fills_a_record(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct sample s;
	struct error e = { 0 };

	(void)state;
	assert_true(decode(
		"<?xml version=\"1.0\"?>\n<x:R xmlns:x=\"urn:x\"><In a='1'><Title>a &amp; &#x62;<!-- c --> d</Title>"
		"</In><Size>-12</Size> <There>true</There><At>2026-11-20T23:00:00.5Z</At>\n<Children>\n"
		" <member><Name>n1</Name><Other><More/></Other></member><member><Size>7</Size><Name/></member>"
		"</Children></x:R>",
		&a, &s, &e));
	assert_string_equal(s.title, "a & b d");
	assert_string_equal(s.absent, "");
	assert_int_equal(s.size, -12);
	assert_true(s.is_there);
	assert_int_equal(s.at, INT64_C(1795215600500));
	assert_int_equal(s.children.count, 2);
	const struct child *c = s.children.items;
	assert_string_equal(c[0].name, "n1");
	assert_string_equal(c[1].name, "");
	assert_int_equal(c[1].size, 7);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "", "XML line 1: no element found" },
		{ "{}", "XML line 1: not well-formed" },
		{ "<R>", "XML line 1: no element found" },
		{ "<R>\n</S>", "XML line 2: mismatched tag" },
		{ "<R/><R/>", "XML line 1: junk after document element" },
		{ "<!DOCTYPE R [<!ENTITY a \"b\">]><R>&a;</R>", "a document type is not allowed" },
		{ "<R>&nbsp;</R>", "undefined entity" },
		{ "<R/>", "In>Title: missing" },
		{ "<R><In><Title><B/></Title></In></R>", "In>Title: found elements; allowed: a text" },
		{ "<R><In><Title/></In><Size>1.5</Size></R>", "Size: found '1.5'; allowed: a whole number" },
		{ "<R><In><Title/></In><Size>99999999999999999999</Size></R>", "allowed: a whole number" },
		{ "<R><In><Title/></In><Size></Size></R>", "Size: found ''" },
		{ "<R><In><Title/></In><There>yes</There></R>", "allowed: true or false" },
		{ "<R><In><Title/></In><At>today</At></R>", "allowed: a time like" },
		{ "<R><In><Title/></In><Children>none</Children></R>", "allowed: a list" },
		{ "<R><In><Title/></In><Children><m/></Children></R>", "Children[]: Name: missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct sample s;
		struct error e = { 0 };
		assert_false(decode(cases[i].text, &a, &s, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		if (!strstr(e.message, cases[i].message))
			fail_msg("%s: %s", cases[i].text, e.message);
	}
}

static void depth_and_number_of_elements_are_capped(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	const struct xml_node *root;
	struct error e = { 0 };

	(void)state;
	for (int i = 0; i < XML_DEPTH + 1; i++)
		buf_text(&text, "<a>");
	assert_false(xml_read(text.text, text.len, &a, &root, &e));
	assert_non_null(strstr(e.message, "too deep"));
	buf_clear(&text);
	buf_text(&text, "<a>");
	for (size_t i = 0; i < XML_ELEMENTS; i++)
		buf_text(&text, "<b/>");
	buf_text(&text, "</a>");
	assert_false(xml_read(text.text, text.len, &a, &root, &e));
	assert_non_null(strstr(e.message, "too many"));
	assert_false(xml_read(text.text, XML_BYTES + 1, &a, &root, &e));
}

static void elements_are_found_by_path(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	static const char text[] = "<a><b><c>1</c></b><b><c>2</c></b><bb>3</bb></a>";
	const struct xml_node *root;
	struct error e = { 0 };

	(void)state;
	assert_true(xml_read(text, sizeof text - 1, &a, &root, &e));
	assert_string_equal(xml_find(root, "b>c")->text, "1");
	assert_string_equal(xml_find(root, "bb")->text, "3");
	assert_null(xml_find(root, "c"));
	assert_null(xml_find(root, "b>c>d"));
	assert_null(xml_find(NULL, "b"));
	assert_ptr_equal(xml_find(root, ""), root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_fills_a_record),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(depth_and_number_of_elements_are_capped),
		cmocka_unit_test(elements_are_found_by_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
