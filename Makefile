# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# The library is headers only, so there is nothing to configure: this builds the tests, the
# examples and the benches under build/, and installs. Sources are found by their place and name,
# never listed. CC, CXX, CFLAGS, CXXFLAGS, CPPFLAGS, LDFLAGS, PREFIX and DESTDIR are yours to set;
# V=1 shows the commands, WERROR=1 makes warnings errors, CK=no does without Concurrency Kit.

CC       = gcc
CXX      = g++
CFLAGS   = -O2 -g
CXXFLAGS = -O2 -g
PREFIX   = /usr/local

MINUTES      = 10
TEST_TIMEOUT = 300
PKG_CONFIG   = pkg-config
INSTALL      = install

VERSION := $(shell awk '/define PCBATCH_VERSION_(MAJOR|MINOR|PATCH) / { v = v s $$3; s = "." } END { print v }' \
             include/pcbatch/version.h)
HEADERS := $(shell cd include && find pcbatch.h pcbatch -name '*.h')

# What each kind of program is made from.
test_src    := $(wildcard tests/test_*.c)
test_sh     := $(wildcard tests/test_*.sh)
single_src  := $(wildcard examples/*.c)
twin_src    := $(wildcard examples/two_units/*.c examples/two_units/*.cpp)
socket_src  := $(wildcard examples/memcg-socket/*.c)
bench_src   := $(wildcard bench/bench_*.c)

tests    := $(test_src:%.c=build/%)
singles  := $(single_src:%.c=build/%)
twin     := $(if $(twin_src),build/examples/two_units)
socket   := $(if $(socket_src),build/examples/memcg-socket)
benches  := $(bench_src:%.c=build/%)
report   := $(if $(bench_src),build/bench/report)
examples  = $(singles) $(twin) $(socket)
obj       = $(patsubst %,build/obj/%.o,$(basename $(1)))

# ---- flags ---------------------------------------------------------------------------------------

warnings  = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef $(if $(filter 1,$(WERROR)),-Werror)
cppflags  = -Iinclude $(ck_flags) $(CPPFLAGS) -MMD -MP
cflags    = -std=gnu11 $(warnings) $(CFLAGS)
cxxflags  = -std=c++17 $(warnings) $(CXXFLAGS)

packages  = apt-get install -y gcc g++ make pkg-config libck-dev libcmocka-dev
missing   = $(error $(1) was not found. On Debian: $(packages)$(2))
# Asked only when something that needs the package is built; the answer is kept.
have      = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo yes)
ck_flags     = $(eval ck_flags := $(if $(filter no,$(CK)),-DPCBATCH_USE_BUILTINS=1,$(if $(call have,ck),$(shell \
                 $(PKG_CONFIG) --cflags ck),$(call missing,Concurrency Kit, (or set CK=no)))))$(ck_flags)
cmocka_flags = $(eval cmocka_flags := $(if $(call have,cmocka),$(shell $(PKG_CONFIG) --cflags cmocka),$(call \
                 missing,cmocka)))$(cmocka_flags)
cmocka_libs  = $(eval cmocka_libs := $(shell $(PKG_CONFIG) --libs cmocka))$(cmocka_libs)

Q   := $(if $(filter 1,$(V)),,@)
say  = $(if $(Q),@printf '  %-4s %s\n' $(1) $@)

# ---- targets -------------------------------------------------------------------------------------

.PHONY: all run check bench bench-compare soak-tests install uninstall dist clean help FORCE
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

all: $(tests) $(examples) $(benches) ## build the tests, the examples and the benches

run: build/examples/memcg-socket ## build and run examples/memcg-socket
	@$<

# rseq_probe says (exit 77) when a machine has no usable rseq; the run is then a skip, with its reason.
# A test whose backend does not matter says so in a comment of its own and runs once.
once     := $(if $(test_src),$(patsubst %.c,build/%,$(shell grep -l '^/\* backend: none \*/' $(test_src))))
twice     = $(filter-out $(once),$(1))
on_both   = $(foreach t,$(1),'build/tests/rseq_probe && PCBATCH_BACKEND=rseq $(t)' 'PCBATCH_BACKEND=generic $(t)')
# What a folder of tests adds to check is in its own .mk: commands here, what they need by a line "check: ...".
check_more =
smoke     = $(singles) $(twin) $(socket:%=%' --seconds 1 --rounds 2')

check: all build/tests/rseq_probe ## run every test, on both backends where there is a difference, and each example
	@TEST_TIMEOUT=$(TEST_TIMEOUT) CC='$(CC)' CXX='$(CXX)' CK='$(CK)' \
	  sh tests/run.sh $(once) $(call on_both,$(call twice,$(tests))) $(test_sh) $(check_more) $(smoke)

peers = $(if $(wildcard bench/peers/peers.mk),build/bench/peers_c build/bench/peers_cpp)
bench: $(benches) $(report) $(peers) $(socket) ## measure, at most 5 minutes (QUICK=1: one); results in build/bench
	@QUICK='$(QUICK)' CC='$(CC)' CFLAGS='$(cflags)' sh bench/run.sh

bench-compare: $(report) ## what changed in build/bench/results.json since OLD=file (or the run before)
	@$(report) compare '$(or $(OLD),build/bench/results.old)' build/bench/results.json

stress = $(filter build/tests/test_stress%,$(tests))
soak-tests: $(stress) build/tests/rseq_probe ## run the stress tests for MINUTES=10 each
	@PCBATCH_SOAK_SECONDS=$$(($(MINUTES) * 60)) TEST_TIMEOUT=$$(($(MINUTES) * 60 + 300)) \
	  sh tests/run.sh $(call on_both,$(stress))

# The .pc goes straight to its place: a copy under build/ would keep an old PREFIX or CK.
pc := share/pkgconfig/pcbatch.pc
install: ## install the headers and pcbatch.pc under DESTDIR/PREFIX (CK=no: a .pc that does not need ck)
	$(Q)for h in $(HEADERS); do \
	  $(INSTALL) -D -m 644 "include/$$h" "$(DESTDIR)$(PREFIX)/include/$$h" || exit; done
	$(Q)$(INSTALL) -d "$(DESTDIR)$(PREFIX)/$(dir $(pc))"
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' $(if $(filter no,$(CK)),-e '/^Requires.private:/d' \
	  -e '/^Cflags:/s/$$/ -DPCBATCH_USE_BUILTINS=1/') pcbatch.pc.in > "$(DESTDIR)$(PREFIX)/$(pc)"
	$(Q)chmod 644 "$(DESTDIR)$(PREFIX)/$(pc)"

uninstall: ## remove what install put there
	$(Q)cd "$(DESTDIR)$(PREFIX)" && rm -f $(pc) $(HEADERS:%=include/%)
	$(Q)cd "$(DESTDIR)$(PREFIX)/include" && if [ -d pcbatch ]; then \
	  find pcbatch -depth -type d -exec rmdir --ignore-fail-on-non-empty {} +; fi

# New files count before they are committed, so that a tarball always is the tree one sees.
files   = if [ -e .git ]; then git ls-files -co --exclude-standard; \
          else find . -type f ! -path './build/*' | sed 's|^\./||'; fi
tarball = build/pcbatch-$(VERSION).tar.gz
dist: ## make build/pcbatch-VERSION.tar.gz
	@mkdir -p build
	$(Q)($(files)) | while read -r f; do [ ! -e "$$f" ] || echo "$$f"; done | LC_ALL=C sort | \
	  tar -czf $(tarball) --owner=0 --group=0 --numeric-owner --transform 's,^,pcbatch-$(VERSION)/,' -T -
	@echo $(tarball)

clean: ## remove build/
	$(Q)rm -rf build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(filter %Makefile %.mk,$(MAKEFILE_LIST))

# ---- rules ---------------------------------------------------------------------------------------

$(tests): private extra = $(cmocka_libs)
$(socket): private extra = -lm

$(tests) $(singles) $(benches) $(report) build/tests/rseq_probe: build/%: build/obj/%.o
$(twin): $(call obj,$(twin_src))
$(socket): $(call obj,$(socket_src))

$(tests) $(singles) $(benches) $(report) $(socket) build/tests/rseq_probe:
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(extra) -lpthread $(LDLIBS)

$(twin):
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ -lpthread $(LDLIBS)

$(call obj,$(test_src)): private extra = $(cmocka_flags)

build/obj/%.o: %.c build/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) $(extra) $(cflags) -c -o $@ $<

build/obj/%.o: %.cpp build/flags
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) $(cppflags) $(cxxflags) -c -o $@ $<

# Rewritten only when a flag has changed, so that CC=clang or WERROR=1 rebuilds what it should.
flags = $(subst ','\'',$(CC) $(CXX) $(cppflags) $(cflags) $(CXXFLAGS) $(LDFLAGS) $(LDLIBS))
build/flags: FORCE
	@mkdir -p build
	@echo '$(flags)' | cmp -s - $@ || echo '$(flags)' > $@

include $(wildcard bench/*/*.mk tests/*/*.mk examples/*/*.mk)

-include $(shell find build/obj -name '*.d' 2>/dev/null)
