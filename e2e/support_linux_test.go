package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bundleAt returns the files of a support bundle by name.
func bundleAt(t *testing.T, file string) map[string]string {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the bundle has mode %s, want 0600", info.Mode())
	}
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		all[path.Base(head.Name)] = string(text)
	}
}

// A bundle of a running service has useful information and no secret, whether it is made with the data directory or a key. Keys without the role admin get none. While the service
// is down, the bundle has information from the data directory.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	const planted = "pl4nted-word"
	s, _ := withSettings(t, `{"notify-events": "https://hooks.invalid/`+planted+`", "objects": "", "limit-fleets": 77}`)
	id, secret := s.key("admin")
	cell, err := os.ReadFile(filepath.Join(s.data, "cell.secret"))
	must(t, err)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".tar.gz") }
	clean := func(files map[string]string) {
		t.Helper()
		for name, text := range files {
			for _, secret := range []string{planted, secret, strings.TrimSpace(string(cell))} {
				if strings.Contains(text, secret) {
					t.Errorf("%s has a secret: %q", name, secret)
				}
			}
		}
	}

	out := s.command("support-bundle", "--data", s.data, "--listen", s.address, "--out", file("local"), "--processor", "1s", "--reason", "ticket 7")
	if !strings.Contains(out, "and does not contain\n") || !strings.Contains(out, "cpu.pprof") {
		t.Errorf("the command says:\n%s", out)
	}
	files := bundleAt(t, file("local"))
	clean(files)
	for name, want := range map[string]string{
		"README.txt": "cpu.pprof", "settings.txt": "notify-events                        set", "log.txt": "listening", "metrics.txt": "muster_records", "overview.json": `"attention"`,
		"state.json": `"entry"`, "machine.json": "Max open files", "doctor.json": `"findings"`, "data-directory.json": `"journal"`, "version.json": `"release"`, "goroutine.txt": "goroutine profile",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q: %.300s", name, want, files[name])
		}
	}
	if len(files["cpu.pprof"]) == 0 || len(files["heap.pprof"]) == 0 {
		t.Error("there are no profiles")
	}
	if log := s.command("audit", "list", "--data", s.data, "--listen", s.address, "--json"); !strings.Contains(log, "support-bundle") || !strings.Contains(log, "ticket 7") {
		t.Errorf("the audit log has no entry of it: %s", log)
	}
	if out, err := s.commandFails("support-bundle", "--data", s.data, "--listen", s.address, "--out", file("local")); err == nil {
		t.Errorf("it replaced a file that exists: %s", out)
	}

	if out, err := s.commandAs(id, secret, "support-bundle", "--server", s.url(), "--out", file("remote"), "--processor", "0s"); err != nil {
		t.Errorf("with an admin key: %v\n%s", err, out)
	}
	files = bundleAt(t, file("remote"))
	clean(files)
	if files["state.json"] == "" || files["data-directory.json"] != "" {
		t.Error("the bundle of a service on another machine has something else than what that service knows")
	}
	for _, role := range []string{"readonly", "backend"} {
		id, secret := s.key(role)
		if out, err := s.commandAs(id, secret, "support-bundle", "--server", s.url(), "--out", file(role)); err == nil || !strings.Contains(out, "which may not make support bundles") {
			t.Errorf("with the role %s: %v\n%s", role, err, out)
		}
		if _, err := os.Stat(file(role)); err == nil {
			t.Errorf("a bundle that was refused with the role %s left a file", role)
		}
	}

	s.kill()
	s.command("support-bundle", "--data", s.data, "--listen", s.address, "--out", file("down"))
	files = bundleAt(t, file("down"))
	clean(files)
	if !strings.Contains(files["service-down.txt"], "no service answers") || !strings.Contains(files["data-directory.json"], `"journal"`) || files["settings.txt"] == "" || files["doctor.json"] == "" {
		t.Errorf("while the service is down: %v", files)
	}
}

// A bundle is made although a disk never answers, to which a pipe without a writer comes close, and says what is missing for that reason.
func TestSupportBundleOfASilentDisk(t *testing.T) {
	t.Parallel()
	data, out := t.TempDir(), filepath.Join(t.TempDir(), "bundle.tar.gz")
	must(t, syscall.Mkfifo(filepath.Join(data, "service.json"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, musterBinary, "support-bundle", "--data", data, "--listen", "127.0.0.1:1", "--out", out)
	cmd.Env = cleanEnvironment()
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	files := bundleAt(t, out)
	if !strings.Contains(files["service-down.txt"], "a disk does not answer") || files["data-directory.json"] == "" || files["settings.txt"] == "" || files["doctor.json"] == "" {
		t.Errorf("got %v", files)
	}
}
