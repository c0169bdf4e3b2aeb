# The commands of a person. Each does its own set-up on a Debian 12 machine (tools/setup).
.PHONY: all run configure program build test test-kubernetes bench check format setup clean install package image
JOBS ?= $(shell nproc)

all: build

setup:
	@tools/setup

configure: setup
	@cmake --preset release > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }; rm -f build-configure.log

# The program alone; ninja says how far it is.
program: configure
	@echo "building build/berth ($(JOBS) at a time; the first time takes some minutes)"
	@cmake --build build -j $(JOBS) --target berth

build: configure
	@echo "building build/berth and its tests ($(JOBS) at a time; the first time takes some minutes)"
	@cmake --build build -j $(JOBS)

test: build
	@ctest --test-dir build --output-on-failure -j $(JOBS)

test-kubernetes: program
	@tests/kubernetes/test

run: program
	@tools/run

bench: program
	@tools/bench

check: setup
	@tools/check

# PREFIX (/usr/local) and DESTDIR as usual.
install: program
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(or $(PREFIX),/usr/local)

package: program
	@cd build && { cpack > package.log 2>&1 || { cat package.log; exit 1; }; } && ls $$PWD/package/*.deb

image: program
	@deploy/image/build build/berth build/berth-image.tar

format: setup
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format-19 -i

clean:
	@rm -rf build build-dev build-asan build-tsan build-tidy
