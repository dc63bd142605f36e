/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* plugin.c - opened by family.c with RTLD_DEEPBIND: malloc here may be another one than in the program. */
#include <stdlib.h>
#include <string.h>

void *plugin_get(size_t n);
void plugin_put(void *p);

void *plugin_get(size_t n)
{
	void *p = malloc(n);

	return p == NULL ? NULL : memset(p, 3, n);
}

void plugin_put(void *p)
{
	free(p);
}
