# The commands of a person. Each does its own set-up on a Debian 12 machine (tools/setup).
.PHONY: all run build test test-kubernetes bench check format setup clean install package image
JOBS ?= $(shell nproc)

all: build

setup:
	@tools/setup

build: setup
	@cmake --preset release > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }; rm -f build-configure.log
	@cmake --build build -j $(JOBS)

test: build
	@ctest --test-dir build --output-on-failure -j $(JOBS)

test-kubernetes: build
	@tests/kubernetes/test

run: build
	@tools/run

bench: build
	@tools/bench

check: setup
	@tools/check

# PREFIX (/usr/local) and DESTDIR as usual.
install: build
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(or $(PREFIX),/usr/local)

package: build
	@cd build && { cpack > package.log 2>&1 || { cat package.log; exit 1; }; } && ls $$PWD/package/*.deb

image: build
	@deploy/image/build build/berth build/berth-image.tar

format: setup
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format-19 -i

clean:
	@rm -rf build build-dev build-asan build-tsan
