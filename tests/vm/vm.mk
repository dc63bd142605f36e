# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: check-vm
check-vm: ## test in virtual machines: 64 CPUs, hotplug, hot-add, PREEMPT_RT, AArch64 (VM=small: fewer, 6 minutes)
	@sh tests/vm/check_vm.sh $(VM)
