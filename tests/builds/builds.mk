# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# make check-builds: the matrix of compilers, options, linkers, sanitizers and architectures; included by the Makefile.

.PHONY: check-builds
check-builds: build/tests/rseq_probe ## run the matrix of builds, sanitizers and architectures (CELLS=regex: some of it)
	@sh tests/builds/run_builds.sh $(if $(CELLS),'$(CELLS)')
