# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/examples/tracker.

tracker_src = $(wildcard examples/tracker/*.c)

all check: build/examples/tracker
check_more += 'build/examples/tracker' 'PCBATCH_BACKEND=generic build/examples/tracker'

build/examples/tracker: $(call obj,$(tracker_src))
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread $(LDLIBS)
