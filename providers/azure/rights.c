#include "providers/azure/rights.h"

#include "providers/azure/text.h"

#include <ctype.h>
#include <string.h>

struct right_text {
	struct decoded_list actions, not_actions;
};

struct page_text {
	struct decoded_list value;
};

static const struct field name_fields[] = { { .path = "", .type = FIELD_STRING } };
static const struct record_spec name_record = { "", sizeof(const char *), name_fields, 1 };
static const struct field right_fields[] = {
	{ .path = "actions", .type = FIELD_LIST, .offset = offsetof(struct right_text, actions), .of = &name_record },
	{ .path = "notActions",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct right_text, not_actions),
	  .of = &name_record },
};
static const struct record_spec right_record = { "", sizeof(struct right_text), right_fields, 2 };
static const struct field page_fields[] = {
	{ .path = "value",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct page_text, value),
	  .required = true,
	  .of = &right_record },
};
static const struct record_spec page_record = { "", sizeof(struct page_text), page_fields, 1 };

bool azure_rights_read(const char *text, size_t len, struct arena *a, struct azure_rights *out, struct error *e)
{
	struct page_text page;

	if (!azure_decode(&page_record, text, len, a, &page, e))
		return error_wrap(e, "permissions");
	const struct right_text *texts = page.value.items;
	struct azure_right *rights = arena_array(a, struct azure_right, page.value.count);
	for (size_t i = 0; i < page.value.count; i++)
		rights[i] = (struct azure_right){ .actions = texts[i].actions.items,
						  .action_count = texts[i].actions.count,
						  .not_actions = texts[i].not_actions.items,
						  .not_action_count = texts[i].not_actions.count };
	*out = (struct azure_rights){ rights, page.value.count };
	return true;
}

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static bool matches(const char *pattern, const char *text)
{
	const char *star = NULL, *again = text;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			again = text;
		} else if (is_same(*pattern, *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool any_matches(const char *const *patterns, size_t count, const char *action)
{
	for (size_t i = 0; i < count; i++)
		if (patterns[i] && matches(patterns[i], action))
			return true;
	return false;
}

bool azure_rights_allow(const struct azure_rights *r, const char *action)
{
	for (size_t i = 0; i < r->count; i++)
		if (any_matches(r->items[i].actions, r->items[i].action_count, action) &&
		    !any_matches(r->items[i].not_actions, r->items[i].not_action_count, action))
			return true;
	return false;
}
