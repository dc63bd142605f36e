# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Models of the protocols for spin, and programs on the headers themselves for CBMC; included by the Makefile. check
# runs the smaller configurations and, where there is a CBMC, its quick programs; check-model runs everything.

model_pml  := $(sort $(patsubst tests/model/%.pml,%,$(wildcard tests/model/*.pml)))
model_cbmc := $(sort $(patsubst tests/model/cbmc/%.c,%,$(wildcard tests/model/cbmc/*.c)))

check_more += $(model_pml:%='sh tests/model/spin.sh %') 'sh tests/model/cbmc.sh slot'

.PHONY: check-model
check-model: ## run the models with spin and CBMC, whole (makes a Debian 13 folder for CBMC: root, debootstrap)
	@mkdir -p build/model && rm -f build/model/table
	@status=0; TEST_TIMEOUT=1200 CC='$(CC)' FULL=1 sh tests/run.sh $(model_pml:%='sh tests/model/spin.sh %') \
	  $(model_cbmc:%='sh tests/model/cbmc.sh -i %') || status=1; \
	echo; echo 'model                     states or VCCs      seconds   mutants found/planted'; \
	cat build/model/table 2>/dev/null; exit $$status
