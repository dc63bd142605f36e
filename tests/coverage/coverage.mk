# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: check-coverage
check-coverage: ## which branches of include/ no test takes (python3)
	@CC='$(CC)' sh tests/coverage/coverage.sh build/coverage
