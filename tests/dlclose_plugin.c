/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* dlclose_plugin.c - a shared object with sections of its own, which uses the main program's domain; see dlclose_host.c. */
#include <pcbatch.h>

int plugin_run(struct pcbatch_group *g, struct pcbatch_counter *c, unsigned int n);
int plugin_quiesce(struct pcbatch_domain *dom);

/* Charges and uncharges n times; leaves this thread's last section here. */
int plugin_run(struct pcbatch_group *g, struct pcbatch_counter *c, unsigned int n)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && err == 0; i++) {
		err = pcbatch_group_charge_stat(g, 1 + i % 3, 1);
		if (err == 0)
			err = pcbatch_group_uncharge_stat(g, 1 + i % 3, 1);
		pcbatch_counter_add(c, 1);
	}
	return err;
}

int plugin_quiesce(struct pcbatch_domain *dom)
{
	return pcbatch_thread_quiesce(dom);
}
