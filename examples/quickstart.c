/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest useful program: an owner with a limit, charged until it says no. */
#include <stdio.h>

#include <pcbatch.h>

static struct pcbatch_domain domain; /* all state of the library is in here */

int main(void)
{
	struct pcbatch_group_attr attr;
	struct pcbatch_group *cache;
	uint64_t granted = 0;

	pcbatch_group_attr_init(&attr);
	attr.max = 1000; /* pages */
	if (pcbatch_domain_init(&domain, NULL) != 0 || pcbatch_group_create(&domain, NULL, &attr, &cache) != 0) {
		fprintf(stderr, "quickstart: cannot set up\n");
		return 1;
	}

	/* Most of these touch one cache line of this CPU; only every 64th goes to the shared counter. */
	while (pcbatch_group_charge(cache, 1) == 0)
		granted++;
	printf("%s backend: granted %llu of at most 1000 pages, then refused\n",
	       pcbatch_backend_name(pcbatch_domain_backend(&domain)), (unsigned long long)granted);

	pcbatch_group_uncharge(cache, granted);
	pcbatch_group_drain(cache); /* give back what CPUs keep cached, so that the figure is exact */
	printf("left: %lld pages\n", (long long)pcbatch_group_current(cache));

	/* Both report -EBUSY if a page is still charged. */
	if (granted != 1000 || pcbatch_group_destroy(cache) != 0 || pcbatch_domain_destroy(&domain) != 0)
		return 1;
	return 0;
}
