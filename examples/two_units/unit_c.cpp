// SPDX-FileCopyrightText: 2026 the pcbatch authors
// SPDX-License-Identifier: BSD-2-Clause
// The same headers in C++: a charge that its owner gives back.
#include "shared.h"

namespace {

class Charge {
public:
	Charge(pcbatch_group *group, uint64_t pages)
	    : group_(group), pages_(pcbatch_group_charge(group, pages) == 0 ? pages : 0)
	{
	}
	~Charge()
	{
		if (pages_ != 0)
			pcbatch_group_uncharge(group_, pages_);
	}
	Charge(const Charge &) = delete;
	Charge &operator=(const Charge &) = delete;

	bool granted() const { return pages_ != 0; }
	uint64_t keep()
	{
		uint64_t pages = pages_;
		pages_ = 0;
		return pages;
	}

private:
	pcbatch_group *group_;
	uint64_t pages_;
};

} // namespace

void *unit_c(void *kept)
{
	uint64_t *pages = static_cast<uint64_t *>(kept);

	for (int i = 0; i < ROUNDS; i++) {
		Charge charge(app_memory, 2);

		if (!charge.granted())
			return nullptr;
		pcbatch_counter_add(&app_requests, 1);
		if (i % 10 == 0)
			*pages += charge.keep();
	}
	return kept;
}
