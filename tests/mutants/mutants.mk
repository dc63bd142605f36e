# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# The library broken on purpose: not part of check. MUTANTS is a regular expression, JOBS how many at a time.

.PHONY: check-mutants
check-mutants: ## break the library on purpose: each mutant must be caught (MUTANTS=regex: only some)
	@CC='$(CC)' CPPFLAGS='$(ck_flags) $(cmocka_flags) $(CPPFLAGS)' LDLIBS='$(cmocka_libs)' JOBS='$(or $(JOBS),2)' sh tests/mutants/run.sh '$(MUTANTS)'
