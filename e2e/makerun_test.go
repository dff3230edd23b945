package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
)

// make run plays the demo with a release's binary, also from an archive, if its checksum is right. It needs no Go then.
func TestRunFromARelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary, err := os.ReadFile(musterBinary)
	must(t, err)
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o644))
		return path
	}
	plain, archive := write("muster-v1-test", binary), write("muster-v1-test.tar.gz", archiveOf(t, "muster-v1/muster", binary))
	for _, path := range []string{plain, archive} {
		name := filepath.Base(path)
		content, err := os.ReadFile(path)
		must(t, err)
		right := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
		wrong := fmt.Sprintf("%x  %s\n", sha256.Sum256(content[1:]), name)
		for _, c := range []struct{ what, list, sums, want string }{
			{"without a checksum", "", "", "no checksum in " + name + ".sha256 or SHA256SUMS"},
			{"of another file", "SHA256SUMS", strings.Replace(right, name, "other", 1), "no checksum in"},
			{"with another checksum", "SHA256SUMS", "0  other\n" + wrong, "the checksum is not that of"},
			{"with its checksum in SHA256SUMS", "SHA256SUMS", "0  other\n" + right, ""},
			{"with another checksum in a file of its own", name + ".sha256", wrong, "the checksum is not that of"},
			{"with its checksum in a file of its own", name + ".sha256", strings.Fields(right)[0] + "\n", ""},
		} {
			if c.list != "" {
				write(c.list, []byte(c.sums))
			}
			cmd := exec.CommandContext(t.Context(), "../scripts/run.sh")
			cmd.Env = []string{"PATH=/usr/bin:/bin", "MUSTER_RELEASE=" + path, "DEMO_FLAGS=--help"}
			out, err := cmd.CombinedOutput()
			if c.want == "" && (err != nil || !bytes.Contains(out, []byte("--game-server"))) {
				t.Errorf("%s %s: %v\n%s", name, c.what, err, out)
			}
			if c.want != "" && (err == nil || !bytes.Contains(out, []byte(c.want)) || bytes.Contains(out, []byte("--game-server"))) {
				t.Errorf("%s %s: %v, want %q\n%s", name, c.what, err, c.want, out)
			}
		}
		must(t, os.Remove(filepath.Join(dir, "SHA256SUMS")))
	}
	cmd := exec.CommandContext(t.Context(), "../scripts/run.sh")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "MUSTER_RELEASE=" + filepath.Join(dir, "none")}
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("there is no file "+dir)) {
		t.Errorf("without a file: %v\n%s", err, out)
	}
}

// Without modules and without a network, make run reports in a few lines what is missing and what to do.
func TestRunWithoutModules(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../scripts/run.sh", "--compile")
	cmd.Env = append(os.Environ(), "GOMODCACHE="+t.TempDir(), "GOPROXY=off", "GOFLAGS=-modcacherw -buildvcs=false", "GOWORK=", "DEMO_FLAGS=--help", // GOWORK as a newcomer has it
		"GIT_DIR=/dev/null") // a release in dist/ is of no known commit, and not taken
	out, err := cmd.CombinedOutput()
	if err == nil || bytes.Count(out, []byte("\n")) > 3 || !bytes.Contains(out, []byte("module lookup disabled by GOPROXY=off")) || !bytes.Contains(out, []byte("set MUSTER_RELEASE")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// The quick build of make run plays the demo, and leaves out the libraries that the demo does not need. It says so where one of them is missing.
func TestQuickBuild(t *testing.T) {
	t.Parallel()
	packages, err := exec.Command("go", "list", "-tags=quick", "-deps", "../cmd/muster").Output()
	must(t, err)
	for _, not := range []string{"go.opentelemetry.io/otel/sdk", "google.golang.org/grpc", "github.com/go-webauthn/webauthn", "charm.land/bubbletea", "github.com/musterhq/muster/internal/bench"} {
		if bytes.Contains(packages, []byte(not)) {
			t.Errorf("the quick build contains %s", not)
		}
	}
	quick := filepath.Join(t.TempDir(), "muster")
	runTool(t, ".", nil, "go", "build", "-tags=quick", "-trimpath", "-ldflags=-w", "-o", quick, "../cmd/muster")
	run := func(environment []string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), quick, args...)
		cmd.Env, cmd.Dir = cleanEnvironment(environment...), t.TempDir()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(nil, "demo", "--exit", "--listen", porttest.Free(t)); err != nil {
		t.Errorf("demo: %v\n%s", err, out)
	}
	for _, c := range []struct {
		environment, args []string
		want              string
	}{
		{nil, []string{"--help"}, "make build compiles all commands into bin/muster"},
		{nil, []string{"hosts", "--help"}, "Usage: muster hosts"}, // the demo names these two at its end
		{nil, []string{"logs", "--help"}, "Usage: muster logs"},
		{nil, []string{"top"}, "unexpected argument top"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, []string{"serve", "--dev", "--listen", "127.0.0.1:0"}, "this quick build of muster exports no telemetry: make build"},
		{nil, []string{"serve", "--dev", "--listen", "127.0.0.1:0", "--audit-export", "otlp", "--otlp-endpoint", "http://127.0.0.1:1"}, "this quick build of muster exports no telemetry: make build"},
	} {
		if out, err := run(c.environment, c.args...); err == nil != slices.Contains(c.args, "--help") || !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) {
			t.Errorf("%s: %v\n%s\nwant %q", c.args, err, out, c.want)
		}
	}
}

func archiveOf(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	files := tar.NewWriter(compressed)
	must(t, files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
	_, err := files.Write(content)
	must(t, err)
	must(t, files.Close())
	must(t, compressed.Close())
	return b.Bytes()
}
