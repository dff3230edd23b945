package secretkey

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The environment and a command give the same key as its file.
func TestKeyFromEnvironmentAndCommand(t *testing.T) {
	k, path := create(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MUSTER_TEST_KEY", string(bytes.TrimSpace(text)))
	sources := []string{path, "env:MUSTER_TEST_KEY"}
	if runtime.GOOS != "windows" {
		sources = append(sources, "command:"+script(t, `cat "$1"`)+" "+path)
	}
	for _, source := range sources {
		if got, err := Read(source, t.TempDir()); err != nil || !got.Same(k) {
			t.Errorf("from %s: %v, %v", source, got, err)
		}
	}
}

// script makes a shell script and returns its path.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeySourcesThatAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts of a shell")
	}
	secret := strings.Repeat("5e", keySize-1)
	t.Setenv("MUSTER_TEST_KEY", secret)
	data := t.TempDir()
	inside := filepath.Join(data, "key")
	if err := os.WriteFile(inside, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	open := script(t, "true")
	if err := os.Chmod(open, 0o722); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"env:":                           "want the name of an environment variable",
		"env:MUSTER_NONE":                "MUSTER_NONE is not set",
		"env:MUSTER_TEST_KEY":            "has 62 characters",
		"command:":                       "absolute path",
		"command:key":                    "absolute path",
		"command:/none/at/all":           "no such file",
		"command:" + data:                "is not a program",
		"command:" + open:                "chmod go-w",
		"command:" + inside:              "in the data directory",
		"command:" + script(t, "exit 3"): "exit status 3",
		"command:" + script(t, "echo "+secret+"; echo no access to the key >&2; exit 1"): "exit status 1: no access to the key",
		"command:" + script(t, "echo "+secret+"zz"):                                      "other characters than hexadecimal digits",
		"command:" + script(t, "head -c 100000000 /dev/zero"):                            "has 256 characters",
	} {
		k, err := Read(source, data)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", source, k, err, want)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has what was printed: %v", source, err)
		}
	}
}

// A program that does not end, or whose child holds its output, delays the start only up to the timeout.
func TestKeyOfASlowProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a shell")
	}
	if k, err := run(script(t, "sleep 600"), nil, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not print the key within 50ms") {
		t.Errorf("%v, %v", k, err)
	}
}
