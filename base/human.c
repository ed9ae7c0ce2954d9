#include "base/human.h"
#include "base/exact.h"

#include <stdio.h>
#include <string.h>

/* Puts commas between the thousands of the digits before the point. */
static struct human grouped(const char *plain)
{
	struct human h = { 0 };
	size_t sign = *plain == '-', whole = strspn(plain + sign, "0123456789"), to = 0;

	for (size_t i = 0; plain[i] && to + 2 < sizeof h.text; i++) {
		if (i > sign && i < sign + whole && (sign + whole - i) % 3 == 0)
			h.text[to++] = ',';
		h.text[to++] = plain[i];
	}
	return h;
}

struct human human_count(int64_t n)
{
	char plain[24];

	snprintf(plain, sizeof plain, "%lld", (long long)n);
	return grouped(plain);
}

struct human human_decimal(double value, int places)
{
	char plain[32];

	snprintf(plain, sizeof plain, "%.*f", places, value);
	return grouped(plain);
}

struct human human_short(double value)
{
	static const char units[] = { 0, 'k', 'M', 'G', 'T' };
	struct human h = { 0 };
	size_t unit = 0;

	for (; (value >= 999.5 || value <= -999.5) && unit + 1 < sizeof units; unit++)
		value /= 1000;
	int places = value > -9.95 && value < 9.95 ? 1 : 0;
	if (exact_round(value * 10) % 10 == 0 || (unit == 0 && places == 0))
		places = 0;
	snprintf(h.text, sizeof h.text, "%.*f", places, value);
	size_t len = strlen(h.text);
	if (len + 1 < sizeof h.text)
		h.text[len] = units[unit];
	return h;
}

struct human human_duration(millis d)
{
	struct human h = { 0 };
	long long seconds = d / SECOND;

	if (d < 0)
		snprintf(h.text, sizeof h.text, "-");
	else if (d < SECOND)
		snprintf(h.text, sizeof h.text, "%lldms", (long long)d);
	else if (d < MINUTE && d % SECOND)
		snprintf(h.text, sizeof h.text, "%.1fs", (double)d / SECOND);
	else if (d < MINUTE)
		snprintf(h.text, sizeof h.text, "%llds", seconds);
	else if (d < HOUR && seconds % 60)
		snprintf(h.text, sizeof h.text, "%lldm%02llds", seconds / 60, seconds % 60);
	else if (d < HOUR)
		snprintf(h.text, sizeof h.text, "%lldm", seconds / 60);
	else if (d < 2 * DAY && seconds / 60 % 60)
		snprintf(h.text, sizeof h.text, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
	else if (d < 2 * DAY)
		snprintf(h.text, sizeof h.text, "%lldh", seconds / 3600);
	else if (seconds / 3600 % 24)
		snprintf(h.text, sizeof h.text, "%lldd%lldh", seconds / 86400, seconds / 3600 % 24);
	else
		snprintf(h.text, sizeof h.text, "%lldd", seconds / 86400);
	return h;
}

struct human human_share(double share)
{
	struct human h = { 0 };

	snprintf(h.text, sizeof h.text, share > 0 && share < 0.001 ? "%.3f %%" : "%.2f %%", share * 100);
	return h;
}

struct human human_dollars(double dollars)
{
	struct human number = human_decimal(dollars, dollars < 100 ? 2 : 0), h = { 0 };

	h.text[0] = '$';
	memcpy(h.text + 1, number.text, sizeof h.text - 2);
	return h;
}
