# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/bench/peers_c and build/bench/peers_cpp; included by the Makefile. A peer whose
# package is missing is left out, and the program says which package it wants.

peers_own  = build/obj/bench/peers/peers.o build/obj/bench/peers/peers_report.o
peers_pkgs = ck liburcu tbb rocksdb

# yes or nothing; asked once, when a program is built.
peers_ck      = $(eval peers_ck := $(call have,ck))$(peers_ck)
peers_liburcu = $(eval peers_liburcu := $(call have,liburcu))$(peers_liburcu)
peers_tbb     = $(eval peers_tbb := $(call have,tbb))$(peers_tbb)
peers_rocksdb = $(eval peers_rocksdb := $(call have,rocksdb))$(peers_rocksdb)

# $(call peers_flags,package,HAVE_NAME): what to compile with.
peers_flags = -DPEERS_HAVE_$(2)=$(if $(peers_$(1)),1 $(shell $(PKG_CONFIG) --cflags $(1)),0)
peers_libs  = $(foreach p,$(1),$(if $(peers_$(p)),$(shell $(PKG_CONFIG) --libs $(p))))

build/bench/peers_c: build/obj/bench/peers/peers_c.o $(peers_own)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread $(LDLIBS)

build/bench/peers_cpp: build/obj/bench/peers/peers_cpp.o $(peers_own)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(call peers_libs,tbb rocksdb) -lpthread $(LDLIBS)

build/obj/bench/peers/peers_c.o: bench/peers/peers_c.c build/flags build/peers-packages
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) $(call peers_flags,ck,CK) $(call peers_flags,liburcu,URCU) $(cflags) -c -o $@ $<

build/obj/bench/peers/peers_cpp.o: bench/peers/peers_cpp.cpp build/flags build/peers-packages
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CXX) $(cppflags) $(call peers_flags,tbb,TBB) $(call peers_flags,rocksdb,ROCKSDB) $(cxxflags) -c -o $@ $<

# Rewritten only when a package came or went.
build/peers-packages: FORCE
	@mkdir -p build
	@echo '$(foreach p,$(peers_pkgs),$(p)=$(peers_$(p)))' | cmp -s - $@ || \
	  echo '$(foreach p,$(peers_pkgs),$(p)=$(peers_$(p)))' > $@
