/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "change.h"

static const char *const titles[CHANGE_NR] = {
	"statistic batched with the stock",
	"parents cached per CPU",
	"uncharge through the stock",
	"reclaim threshold",
	"event batch 256, narrow blocking",
};

const char *change_title(unsigned int index)
{
	return titles[index];
}

const char *change_name(unsigned int changes, char *buf, size_t size)
{
	size_t used = 0;

	if (changes & CHANGE_OFF) {
		snprintf(buf, size, "off");
		return buf;
	}
	if (changes == CHANGE_NONE || changes == CHANGE_ALL) {
		snprintf(buf, size, "%s", changes ? "after" : "before");
		return buf;
	}
	buf[0] = '\0';
	for (unsigned int i = 0; i < CHANGE_NR && used + 5 < size; i++)
		if (changes & (1u << i))
			used += (size_t)snprintf(buf + used, size - used, "%s%03u",
						 used ? "," : "", i);
	return buf;
}
