# `make run` and `make test` on a clean Debian 12 do what else is needed first; only Swift itself has to be there.

# The one list of Debian packages: to build and run, and on top of those to test.
BUILD_PACKAGES := ca-certificates git gcc g++ libc6-dev libnghttp2-dev libssl-dev libsystemd-dev pkg-config
TEST_PACKAGES := codespell python3 python3-pytest python3-dnspython python3-cryptography python3-html5lib \
	python3-h2 python3-prometheus-client python3-yaml prometheus unbound dnsdist nginx-light haproxy knot-resolver \
	knot-dnsutils stubby smartdns tayga tcpdump strace redis-server bind9-dnsutils curl iproute2 nftables util-linux systemd-container dnsperf valgrind chromium
BENCH_PACKAGES := python3 dnsperf nghttp2-client openssl unbound dnsmasq-base dnsdist smartdns knot-resolver dnss stubby

SWIFT_VERSION := 6.2
# Exclusive access to a class's properties is checked as it is everywhere else: by the compiler. What it cannot tell is checked
# at run time in all other builds (tests, sanitizers, fuzzing, simulation); here that would be a tenth of a miss. No word of
# the folder it is built in gets into the program, so that it is the same from each.
MAPPED := $(CURDIR)=/usr/src/httpdnsd
# The C++ library, which Swift's runtime uses, is linked in as that is: at each start 5,000 names would be looked up for it.
LINKED_IN := $(CURDIR)/.build/linked-in
# The metadata of generic types comes from accessors: by name, the runtime would search all conformances for each dictionary of
# this program's types, a fifth of a start. The linker is the one that comes with Swift. No symbol is exported, as Swift would have
# all 9,000 of them: nothing is loaded that could use one, and the table would be looked through for each name of a library.
# The 49,000 relocations take 10 KB in place of 1.2 MB, all of which a start would read (glibc 2.36 or newer).
# A start and a lookup call a tenth of the code, but the kernel takes 64 KB of it into memory at once. So each function has a section
# of its own, and those in config/order.txt are put side by side, as are, by config/private.ld, those that have no name to list: of
# 14 MB of code, 3.6 are in memory when idle, and 9.0 would be.
RELEASE := -c release --static-swift-stdlib --disable-local-rpath -Xswiftc -use-ld=lld \
	-Xlinker -z -Xlinker now -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --no-export-dynamic \
	-Xlinker --symbol-ordering-file=$(CURDIR)/config/order.txt -Xlinker --no-warn-symbol-ordering \
	-Xlinker -T -Xlinker $(CURDIR)/config/private.ld \
	-Xlinker -L$(LINKED_IN) -Xswiftc -enforce-exclusivity=unchecked \
	-Xswiftc -Xfrontend -Xswiftc -disable-concrete-type-metadata-mangled-name-accessors \
	-Xswiftc -Xfrontend -Xswiftc -function-sections \
	-Xswiftc -file-prefix-map -Xswiftc $(MAPPED) -Xcc -ffile-prefix-map=$(MAPPED) -Xcxx -ffile-prefix-map=$(MAPPED)
SWIFT_SOURCES := Package.swift Sources Tests
# The system's Python, which sees Debian's packages. No byte code beside the sources.
PYTHON := /usr/bin/python3 -B

# The modules whose tests use sockets and time: they come before the tests of the daemon, which load the machine.
REAL_TIME := DaemonTests|UpstreamsTests|StreamsTests|LogTests|TransportTests|DemoServiceTests
# Of the others, those that take a third of the time: they run beside the rest.
FORWARDER := ForwardingTests
# Without debug information their build takes a third less.
UNIT_TESTS := --scratch-path .build/unit -debug-info-format none
# The readers of strangers' bytes (Tests/Fuzz/Sources), and for how long each is tried: make fuzz TARGETS="query http"
TARGETS := query response binding stream frames doh resp http http2 keepalive request service providers conf cachefile configuration \
	server resolvconf hosts addresses domains blocklist history
FUZZ_SECONDS ?= 60
# Hours that the daemon lives in `make simulate`, and the seed of a run to see again, with the places of the events that KEEP
# names; VERBOSE=1 tells the story.
SIMULATED_HOURS ?= 1000
SEED ?=
KEEP ?=
VERBOSE ?=
# How many mutants are tried.
COUNT ?= 600
SIMULATION := -c release --scratch-path .build/simulation -Xswiftc -enable-testing
# With AddressSanitizer, or without one and some five times as fast: make fuzz SANITIZER=none. Of several sanitizers that
# SwiftPM passes on one by one, swiftc takes the last alone. Without one, a core tries 25,000 to 80,000 inputs a second; fewer of
# `request` (18,000), `hosts` (16,000), `stream` (6,000) and `configuration` (4,000), where an input is more work.
SANITIZER ?= address
comma := ,
FUZZ := -c release -Xswiftc -enable-testing --sanitize fuzzer $(if $(filter address,$(SANITIZER)),\
	--scratch-path .build/fuzz --sanitize address -Xswiftc -sanitize=fuzzer$(comma)address,--scratch-path .build/fuzz-fast)
# More for pytest, as in: make e2e-test PYTEST="-k certificate -x"
PYTEST ?=
# The bench: seconds for everything; ONLY=hits-1000,miss and RIVALS=unbound,kresd take a part of it.
BENCH_SECONDS ?= 600
ONLY ?=
RIVALS ?=

include config/packaging.mk

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help run build format settings order clean
.PHONY: test resolve unit-test unit-build real-time-test timeless-test forwarder-test e2e-test systemd-test test-asan test-tsan fuzz simulate mutants faults lint bench
.PHONY: swift build-packages test-packages bench-packages

help: ## this list
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name what; do
	  printf '  make %-14s %s\n' "$$name" "$$what"
	done

run: build ## build, then the daemon with an HTTPDNS service of its own, on 127.0.0.1:5300
	@exec "$$(swift build $(RELEASE) --show-bin-path)/httpdnsd" demo

build: swift build-packages ## the release build
	@mkdir -p $(LINKED_IN)
	ln -sf "$$(gcc -print-file-name=libstdc++.a)" $(LINKED_IN)
	swift build $(RELEASE) --product httpdnsd

# Two builds at once would fetch the same.
resolve: swift build-packages
	@swift package resolve

# The tests of the daemon, of packages, containers and the booted systemd mostly wait, and the release build often has work for one
# processor alone. In the time that is left the modules' tests are built, and those run that wait for nothing; the others, which need
# real time, have the machine for themselves.
test: test-packages resolve ## all tests
	@mkdir -p .build
	ended() {
	  local status=0
	  wait "$$1" || status=$$?
	  cat ".build/$$2.log"
	  return $$status
	}
	modules() {
	  $(MAKE) --no-print-directory unit-build JOBS='--jobs 1' || return
	  $(MAKE) --no-print-directory forwarder-test &
	  local forwarder=$$! status=0
	  $(MAKE) --no-print-directory timeless-test || status=$$?
	  wait $$forwarder || status=$$?
	  return $$status
	}
	# Each part beside the shell has a group of its own, which Ctrl-C, a hangup or a failed build ends.
	timeless= machines=
	trap 'trap "" INT TERM HUP; for part in $$timeless $$machines; do kill -- -$$part 2> /dev/null || true; done' EXIT
	trap 'exit 130' INT TERM HUP
	set -m
	{ renice -n 19 $$BASHPID > .build/nice && modules; } > .build/timeless.log 2>&1 &
	timeless=$$!
	set +m
	$(MAKE) --no-print-directory build || exit 1
	set -m
	$(MAKE) --no-print-directory systemd-test package-test container-test > .build/machines.log 2>&1 &
	machines=$$!
	set +m
	status=0
	$(MAKE) --no-print-directory e2e-test || status=$$?
	ended $$machines machines || status=$$?
	ended $$timeless timeless || status=$$?
	trap - EXIT  # other processes may get the numbers of these groups
	$(MAKE) --no-print-directory real-time-test || status=$$?
	if [ $$status != 0 ]; then
	  echo 'make: the failures again, from all parts:'
	  grep -hE '^(FAILED|ERROR|E  ) |^✘ |error: |^make.*: \*\*\* ' \
	    .build/{machines,timeless,real-time-test}.log .build/end-to-end/*.log | tail -n 200 || true
	fi
	exit $$status

unit-test: unit-build real-time-test timeless-test forwarder-test ## the tests of the modules

unit-build: swift build-packages test-packages
	@swift build --build-tests $(JOBS) $(UNIT_TESTS)

real-time-test:
	@$(call unit-tests,$(UNIT_TESTS) --filter='$(REAL_TIME)')

timeless-test:
	@$(call unit-tests,$(UNIT_TESTS) --skip='$(REAL_TIME)|$(FORWARDER)')

forwarder-test:
	@$(call unit-tests,$(UNIT_TESTS) --filter='$(FORWARDER)')

# One test after the other: two at once take as long. A run that finds no test ends well, so the count is looked at. The tests
# that were left out are named again at the end, with the reason.
define unit-tests
	log=.build/$@.log
	swift test --skip-build --ignore-lock --disable-xctest --no-parallel $(1) 2>&1 | tee $$log
	grep -qE 'Test run with [1-9][0-9]* tests?' $$log || { echo 'make: no test was run' >&2; exit 1; }
	sed -nE 's/^[^ ]+ ((Test|Suite) .*) skipped:/left out: \1:/p' $$log
endef

# In several sessions at once, each in namespaces of its own, which share the tests: see Tests/EndToEnd/conftest.py.
e2e-test: build test-packages ## the tests of the built daemon, in namespaces of their own
	@export HTTPDNSD_BINARY="$$(swift build $(RELEASE) --show-bin-path)/httpdnsd"
	logs="$$PWD/.build/end-to-end"
	cd Tests/EndToEnd
	if [ -n '$(PYTEST)' ]; then exec $(PYTHON) -m pytest $(PYTEST); fi
	rm -rf "$$logs"
	mkdir -p "$$logs/taken"
	sessions=()
	for number in 2 3 4; do
	  $(PYTHON) -m pytest "--beside=$$logs/taken" > "$$logs/$$number.log" 2>&1 &
	  sessions+=($$!)
	done
	status=0
	$(PYTHON) -m pytest "--beside=$$logs/taken" | tee "$$logs/1.log" || status=$$?
	for session in "$${sessions[@]}"; do wait "$$session" || status=$$?; done
	cat "$$logs"/[234].log
	exit $$status

systemd-test: build test-packages ## the units, under a systemd of their own in a container; needs root, else left out
	@Tests/Systemd/boot "$$(swift build $(RELEASE) --show-bin-path)/httpdnsd" $(PYTEST)

bench: build bench-packages ## what it costs beside its rivals: BENCH_SECONDS=600 ONLY=… RIVALS=…
	@$(PYTHON) Tests/Performance/bench.py --binary "$$(swift build $(RELEASE) --show-bin-path)/httpdnsd" \
	  --seconds "$(BENCH_SECONDS)" --only "$(ONLY)" --rivals "$(RIVALS)"

# A sanitizer's report fails the unit test it interrupts, and the end-to-end test whose daemon then ends with its exit code.
test-asan: swift build-packages test-packages ## unit and end-to-end tests with AddressSanitizer
	@export ASAN_OPTIONS=malloc_context_size=10 LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/Sanitizers/lsan.supp:print_suppressions=0
	$(call sanitized,--sanitize address --scratch-path .build/address)

test-tsan: swift build-packages test-packages ## the same with ThreadSanitizer
	@mkdir -p .build/thread
	clang -Wall -Wextra -Werror -O1 -c Tests/Sanitizers/mutex.c -o .build/thread/mutex.o
	export TSAN_OPTIONS=atexit_sleep_ms=0
	$(call sanitized,--sanitize thread --scratch-path .build/thread -Xlinker $(CURDIR)/.build/thread/mutex.o)

define sanitized
	swift build --build-tests $(1)
	$(call unit-tests,$(1))
	export HTTPDNSD_BINARY="$$(swift build $(1) --show-bin-path)/httpdnsd" HTTPDNSD_SANITIZED=1
	cd Tests/EndToEnd && $(PYTHON) -m pytest $(PYTEST)
endef

# Goes on from what earlier runs have found, beside the seeds. With a sanitizer it looks for what is wrong in long inputs and
# notes how near each comparison comes; without one it is to be fast, which long inputs of lines are not.
fuzz: swift build-packages ## libFuzzer on every reader of strangers' bytes, FUZZ_SECONDS each
	@HTTPDNSD_FUZZ=1 swift build $(FUZZ) --product Fuzz
	binary="$$(HTTPDNSD_FUZZ=1 swift build $(FUZZ) --show-bin-path)/Fuzz"
	export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=malloc_context_size=8:quarantine_size_mb=16
	export LSAN_OPTIONS=suppressions=Tests/Sanitizers/lsan.supp:print_suppressions=0
	rm -rf .build/fuzz/seeds .build/fuzz/dictionaries
	$(PYTHON) Tests/Fuzz/corpus.py unpack .build/fuzz/seeds
	cp -r Tests/Fuzz/Dictionaries .build/fuzz/dictionaries
	$(PYTHON) Tests/Fuzz/corpus.py keys >> .build/fuzz/dictionaries/configuration.dict
	status=0
	notes=-use_value_profile=$(if $(filter address,$(SANITIZER)),1,0)
	for target in $(TARGETS); do
	  case $$target in
	  http|http2|keepalive|request) more=-max_len=20480 ;;
	  cachefile|resolvconf|hosts|addresses|domains|blocklist|history) more=-max_len=8192 ;;
		  *) more=-max_len=4096 ;;
	  esac
	  case $(SANITIZER)-$$target in
	  none-keepalive|none-hosts) less=-max_len=1024 ;;
	  *) less= ;;
	  esac
	  found=.build/fuzz/findings/$$target
	  mkdir -p $$found .build/fuzz/corpus/$$target
	  if FUZZ_TARGET=$$target $$binary $$more $$less $$notes -max_total_time=$(FUZZ_SECONDS) -timeout=5 \
	    -rss_limit_mb=2048 -print_final_stats=1 -dict=.build/fuzz/dictionaries/$$target.dict -artifact_prefix=$$found/ \
	    .build/fuzz/corpus/$$target .build/fuzz/seeds/$$target > $$found/log 2>&1; then
	    sed -nE "s/^#([0-9]+)\\s+DONE\\s+cov: ([0-9]+) ft: ([0-9]+).*/$$target: \\1 inputs, \\2 edges, \\3 features/p" $$found/log
	    [ $(FUZZ_SECONDS) -ge 60 ] || continue
	    rm -rf .build/fuzz/smaller
	    mkdir -p .build/fuzz/smaller
	    FUZZ_TARGET=$$target $$binary $$more -merge=1 -use_value_profile=1 .build/fuzz/smaller .build/fuzz/corpus/$$target \
	      > $$found/merge.log 2>&1
	    rm -r .build/fuzz/corpus/$$target
	    mv .build/fuzz/smaller .build/fuzz/corpus/$$target
	  else
	    status=1
	    echo "$$target: a finding, see $$found"
	    grep -vE '^#[0-9]+\s+(NEW|REDUCE|RELOAD|pulse)' $$found/log | tail -n 50
	  fi
	done
	exit $$status

# Two processes share the hours, each with a seed of its own; one alone goes through what is to be seen again.
simulate: swift build-packages ## the daemon in invented time, over an invented network: SIMULATED_HOURS=1000 SEED=…
	@HTTPDNSD_SIMULATION=1 swift build $(SIMULATION) --product Simulation
	export VERBOSE='$(VERBOSE)' KEEP='$(KEEP)'
	binary="$$(HTTPDNSD_SIMULATION=1 swift build $(SIMULATION) --show-bin-path)/Simulation"
	if [ -n '$(SEED)' ]; then
	  SEED='$(SEED)' SIMULATED_HOURS='$(SIMULATED_HOURS)' exec "$$binary"
	fi
	half=$$(( ($(SIMULATED_HOURS) + 1) / 2 ))
	met=.build/simulation/crossings
	rm -f $$met-1 $$met-2
	CROSSINGS=$$met-2 SIMULATED_HOURS=$$half "$$binary" &
	other=$$!
	status=0
	CROSSINGS=$$met-1 SIMULATED_HOURS=$$half "$$binary" || status=1
	wait $$other || status=1
	if (( status == 0 )); then CROSSINGS_OF="$$met-1 $$met-2" "$$binary"; fi
	exit $$status

mutants: swift build-packages ## which changed decisions the tests do not see: COUNT=600 SEED=… ONLY=FILE:LINE
	@COUNT='$(COUNT)' SEED='$(SEED)' ONLY='$(ONLY)' $(PYTHON) Tests/Mutants/mutants.py

faults: swift build-packages ## within how many simulated hours the judge finds faults that there were: ONLY=NAME SEED=…
	@SEED='$(SEED)' ONLY='$(ONLY)' $(PYTHON) Tests/Simulation/faults.py

lint: swift test-packages ## format, syntax, spelling, plain words and whether the faults still fit, without changing anything
	@swift format lint --strict --recursive $(SWIFT_SOURCES)
	codespell --ignore-words Tests/Words/known.txt --skip '*.png,*.zh-CN.md,*.dict,ceilings.txt,order.txt,Corpus' \
	  README.md Makefile config docs systemd Sources Tests
	$(PYTHON) Tests/Words/words.py
	$(PYTHON) Tests/Simulation/faults.py --fit
	find Tests -name '*.py' -exec $(PYTHON) -c 'import sys; [compile(open(file).read(), file, "exec") for file in sys.argv[1:]]' {} +

format: swift ## bring the Swift sources into the house format
	@swift format --in-place --recursive $(SWIFT_SOURCES)

settings: build ## docs/settings.md anew, from the manual page and the program
	@$(PYTHON) config/settings.py "$$(swift build $(RELEASE) --show-bin-path)/httpdnsd" > docs/settings.md.new
	mv docs/settings.md.new docs/settings.md

order: build test-packages ## config/order.txt again: the functions that a start and a lookup call
	@binary="$$(swift build $(RELEASE) --show-bin-path)/httpdnsd"
	$(PYTHON) Tests/Performance/order.py "$$binary" > config/order.txt.new
	mv config/order.txt.new config/order.txt
	rm "$$binary"  # the next build links it again

clean: ## remove what was built
	@rm -rf .build Tests/*/__pycache__

swift:
	@found="$$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p' | head -n 1 || true)"
	if [ -z "$$found" ] || [ "$$(printf '%s\n' $(SWIFT_VERSION) "$$found" | sort -V | head -n 1)" != $(SWIFT_VERSION) ]; then
	  echo "make: Swift $(SWIFT_VERSION) or newer is needed, $${found:-none} was found." >&2
	  echo "      Get it from https://www.swift.org/install/linux/ and put its usr/bin into PATH." >&2
	  exit 1
	fi

# Installs what is missing as root, or says what to type; where there is no dpkg, the compiler says what is missing. Nothing that
# is installed is started: a name server that comes with the tests has no business on port 53 of this machine.
define install
	@if ! command -v dpkg-query > /dev/null; then
	  echo "make: this is no Debian; what these packages hold has to be there: $(1)" >&2
	  exit 0
	fi
	missing=()
	for package in $(1); do
	  [[ "$$(dpkg-query --show --showformat='$${db:Status-Status}' "$$package" 2>/dev/null)" == installed* ]] \
	    || missing+=("$$package")
	done
	[ "$${#missing[@]}" -gt 0 ] || exit 0
	if [ "$$(id -u)" -ne 0 ]; then
	  echo "make: packages are missing. As root:" >&2
	  echo "      apt-get update && apt-get install --yes --no-install-recommends $${missing[*]}" >&2
	  exit 1
	fi
	if [ ! -e /usr/sbin/policy-rc.d ]; then
	  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
	  chmod +x /usr/sbin/policy-rc.d
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update --quiet
	apt-get install --yes --quiet --no-install-recommends "$${missing[@]}" < /dev/null
endef

build-packages:
	$(call install,$(BUILD_PACKAGES))

test-packages:
	$(call install,$(TEST_PACKAGES))

bench-packages:
	$(call install,$(BENCH_PACKAGES))
