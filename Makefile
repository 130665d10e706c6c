# SPDX-License-Identifier: GPL-2.0-only
# What can be made here; `make` alone lists it.
#
# Kernel modules are built from a copy of the sources in build/kmod/<release>/, so that builds for several kernels
# never mix and the tree stays clean. vm/run hands the guest what lies there.

KERNEL ?= stock
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/forebay
DEBUG_KERNEL := $(CACHE)/debug-kernel
FETCHED := $(CACHE)/linux

ifeq ($(KERNEL),stock)
KREL = $(notdir $(lastword $(shell ls -vd /lib/modules/6.12*-amd64)))
KDIR = /lib/modules/$(KREL)/build
else ifeq ($(KERNEL),debug)
KREL = $(shell cat $(DEBUG_KERNEL)/release)
KDIR = $(DEBUG_KERNEL)/build
else ifneq ($(wildcard $(FETCHED)/$(KERNEL)/release),)
# Built where its own compiler is (docs/kernels.md).
KROOT = $(FETCHED)/$(KERNEL)/root
KREL = $(shell cat $(FETCHED)/$(KERNEL)/release)
KDIR = /usr/lib/modules/$(KREL)/build
INSIDE = vm/inside $(KROOT)
else ifneq ($(wildcard $(KERNEL)/Makefile),)
KREL = $(shell $(MAKE) -s -C $(KERNEL) kernelrelease)
KDIR = $(KERNEL)
else
$(error KERNEL is stock, debug, the series of a fetched kernel (scripts/setup --for kernels) or a build folder, not '$(KERNEL)')
endif

KMOD = build/kmod/$(KREL)
KMOD_SOURCES = compat core fs include dm emu
KMOD_FILTER = --delete --include='*/' --exclude='*.mod.c' --exclude=compat/features.h --include=features.sh --include='*.[ch]' --include=Kbuild --include=Makefile --exclude='*'

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo 'Options: KERNEL=stock|debug|7.3|PATH (docs/kernels.md)'

setup: ## install what a fresh Debian 12 lacks
	scripts/setup

modules: ## build the kernel modules into build/kmod/<release>/
	@test -n '$(KREL)' -a -d '$(KROOT)$(KDIR)' || { echo 'no $(KERNEL) kernel to build for: make setup, or make debug-kernel' >&2; exit 1; }
	@mkdir -p $(KMOD)
	@# A file that is changed while it is compiled must be newer than its object: so times aren't copied.
	rsync -a --no-times --checksum --prune-empty-dirs $(KMOD_FILTER) Kbuild $(wildcard $(KMOD_SOURCES)) $(KMOD)/
	$(if $(INSIDE),$(INSIDE) make $(if $(KCFLAGS),KCFLAGS='$(KCFLAGS)'),$(MAKE)) -C $(KDIR) M=$(CURDIR)/$(KMOD) $(CHECK_FLAGS) modules

demo: ## Redis and fio on four systems, then a power cut; installs and builds what it needs (5 minutes)
	@echo 'Runs Redis and fio on ext4, dm-writecache, forebay and tmpfs in a virtual machine, pulls its plug, and looks what'
	@echo 'was lost. All kernel code runs in that machine. This takes 5 minutes, and the download of packages, if any.'
	@scripts/setup --for demo --tell
	@began=$$(date +%s) && scripts/setup --for demo && $(MAKE) --no-print-directory modules tools && \
		bench/demo --began $$began

bench: ## every experiment at smoke size and a report of them; installs what that takes (BENCH='sync --full': one experiment)
	scripts/setup
	@$(MAKE) --no-print-directory modules tools
	bench/run $(or $(BENCH),all)

# A thread of a test that ends by an exception makes the test fail.
PYTEST = /usr/bin/python3 -m pytest -q -p no:cacheprovider -W error::pytest.PytestUnhandledThreadExceptionWarning

test: ## what CI runs: crash states and units on the host; semantics, the command, PMDK and power cuts in the guest (N=4)
	scripts/setup --for test
	@$(MAKE) --no-print-directory modules tools
	@$(MAKE) --no-print-directory test-core test-host test-tools
	tests/run --short --jobs 2 --boot names,attack,emu,calls,interface,agree
	tests/powercut/run $(or $(N),4) --fs ext4,xfs
	tests/powercut/run 2 --flushed --fs ext4
	tests/powercut/run $(or $(N),4) --names --cut-replay --fs ext4,xfs
	tests/pmdk/run 2

test-all: ## everything: test, and test-packages, test-vm, test-apps, test-machine, test-systemd, test-suites (KERNEL=debug: under KASAN and lockdep)
	@$(MAKE) --no-print-directory test test-packages test-vm test-apps test-machine test-systemd test-suites

test-host: ## unit tests of the Python parts
	$(PYTEST) tests/bench tests/powercut tests/apps tests/lib tests/xfstests tests/pjdfstest

test-machine: ## tests of the test machine
	$(PYTEST) vm/tests/test_run.py

test-cluster: ## etcd, PostgreSQL, Redis, DRBD, GlusterFS and NVMe over TCP on machines whose power and network are cut (CLUSTER='--failovers 30 ...' for etcd)
	scripts/setup --for cluster
	@$(MAKE) --no-print-directory modules tools
	$(PYTEST) tests/cluster vm/tests/test_cluster.py
	tests/cluster/run $(CLUSTER)
	tests/cluster/run --data tmpfs --failovers 0 --network 0 --replaced 0 --expect-loss
	tests/cluster/failover --faults isolate_primary cut_both
	tests/cluster/failover --asynchronous --faults isolate_primary --expect-loss
	tests/cluster/failover --engines drbd --faults cut_both isolate_primary
	tests/cluster/failover --engines gluster --faults cut_both
	tests/cluster/export --faults cut_target cut_both

test-systemd: ## README's lines on Debian 12 with systemd, installed and booted, cut, with devices missing; also from packages (DEBIAN=12|13)
	scripts/setup --for image
	scripts/setup --for deb
	FOREBAY_DEBIAN=$(or $(DEBIAN),12) $(PYTEST) -x tests/systemd

test-packages: ## the Debian packages: contents, lintian, the same files from two folders, maintainer scripts
	scripts/setup --for deb
	$(PYTEST) tests/packages

test-tools: modules tools ## the forebay command, on images, also those of old commits, and in the guest
	$(PYTEST) tests/tools tests/formats
	vm/run --pmem 128M --kernel $(KERNEL) --silence 900 -- $(PYTEST) tests/tools/guest

test-core: ## run the tests of core/ on the host: every crash state, with sanitizers
	@$(MAKE) --no-print-directory -j2 -C tests/core check

test-vm: modules ## the file system's semantics, coherence, errors, in the guest (KERNEL=debug: under KASAN and lockdep)
	scripts/setup --for recipes
	$(MAKE) --no-print-directory tools
	tests/run --kernel $(KERNEL) --jobs 2

test-kernels: ## build with W=1, and run the tests in the guest, on each kernel that is there (scripts/setup --for kernels)
	@for kernel in stock $(patsubst $(FETCHED)/%/release,%,$(wildcard $(FETCHED)/*/release)); do \
		echo "== Linux $$kernel"; \
		$(MAKE) --no-print-directory modules KERNEL=$$kernel CHECK_FLAGS=W=1e && \
		$(MAKE) --no-print-directory tools && tests/run --kernel $$kernel || exit 1; done

test-pmdk: modules tools ## unmodified PMDK programs through power cuts (N=4)
	tests/pmdk/run $(or $(N),4)

test-agree: modules tools ## an hour of two processes at one file, under KASAN and lockdep (SECONDS=3600)
	$(MAKE) --no-print-directory modules KERNEL=debug
	tests/run --kernel debug --boot agree --seconds $(or $(SECONDS),3600)

attack: modules tools ## the fuzzer, for hours (SECONDS=3600 SEED=n KERNEL=stock|debug ATTACK='--fs xfs ...')
	tests/attack/run --kernel $(KERNEL) --seconds $(or $(SECONDS),3600) $(and $(SEED),--seed $(SEED)) $(ATTACK)

test-apps: modules tools ## real applications over ext4, xfs and btrfs; databases through a power cut
	tests/apps/run --kernel $(KERNEL)

test-suites: modules tools ## xfstests' short list and pjdfstest, if FOREBAY_XFSTESTS and FOREBAY_PJDFSTEST name folders (docs/xfstests.md)
	@if [ -n '$(FOREBAY_XFSTESTS)' ]; then tests/xfstests/run --short --kernel $(KERNEL); else \
		echo 'xfstests: skipped, FOREBAY_XFSTESTS names no checkout of it (docs/xfstests.md)'; fi
	@if [ -n '$(FOREBAY_PJDFSTEST)' ]; then tests/pjdfstest/run --kernel $(KERNEL); else \
		echo 'pjdfstest: skipped, FOREBAY_PJDFSTEST names no checkout of it (docs/xfstests.md)'; fi

debug-kernel: ## build the kernel with KASAN, lockdep, kmemleak and fault injection (once; kept in ~/.cache/forebay)
	scripts/setup --for debug-kernel
	vm/debug-kernel

powercut: modules tools ## cut the power N times and look for lost promises (N=100, POWERCUT='--fs xfs ...')
	tests/powercut/run $(or $(N),100) $(POWERCUT)

powercut-selftest: modules tools ## show that the power-cut campaign notices faults put in on purpose
	tests/powercut/selftest

powercut-emulated: modules tools ## the same on emulated devices, in one boot, which loses more (N=100, PLANS='--fs xfs ...')
	tests/emu/plans $(or $(N),100) $(PLANS)

emucuts: modules tools ## thousands of emulated power cuts in one boot (N=1000, EMUCUTS='--subject writelog ...')
	tests/emu/run $(or $(N),1000) $(EMUCUTS)

tools: ## build the forebay command into build/tools/
	@$(MAKE) --no-print-directory -C tools O=../build/tools

lib: ## build libforebay into build/lib/
	@$(MAKE) --no-print-directory -C lib O=../build/lib

python: ## build libforebay's Python module into build/lib/python/
	@$(MAKE) --no-print-directory -C lib python O=../build/lib

check: ## static checks: checkpatch, sparse, W=1, analyzers, Python and man page lint
	scripts/setup --for test
	scripts/check

# systemd, where it runs, has to be told of its units.
RELOAD = [ -n '$(DESTDIR)' ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload

install: ## install the modules (by DKMS, for each kernel 6.12), the command, libforebay, manuals, units (PREFIX=/usr/local)
	scripts/setup --for install
	@$(MAKE) --no-print-directory tools lib
	$(MAKE) --no-print-directory -C tools O=../build/tools install
	$(MAKE) --no-print-directory -C lib O=../build/lib install
	[ -n '$(DESTDIR)' ] || ldconfig
	$(MAKE) --no-print-directory -C packaging units dkms
	@$(RELOAD)
	@[ -n '$(DESTDIR)' ] || scripts/setup --left

uninstall: ## undo make install (the same PREFIX); before: unmount, `forebay writelog remove`, `transit remove` (README.md)
	$(MAKE) --no-print-directory -C tools uninstall
	$(MAKE) --no-print-directory -C lib uninstall
	[ -n '$(DESTDIR)' ] || ldconfig
	$(MAKE) --no-print-directory -C packaging uninstall
	@$(RELOAD)

deb: ## build the Debian packages into build/deb/ (docs/packages.md)
	scripts/setup --for deb
	packaging/deb

clean: ## remove build/
	rm -rf build

.PHONY: help setup modules test test-all test-suites test-machine test-cluster test-systemd test-host test-packages test-tools test-vm test-kernels demo bench test-core test-apps attack debug-kernel test-pmdk test-agree powercut powercut-selftest powercut-emulated emucuts tools lib python install uninstall deb check clean
