package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/settings"
)

// unpacked returns the files of a bundle by name.
func unpacked(t *testing.T, bundle []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if head.Mode != 0o600 || !strings.HasPrefix(head.Name, "muster-support-20270102-030405/") {
			t.Errorf("file %s has mode %o", head.Name, head.Mode)
		}
		all[filepath.Base(head.Name)] = string(text)
	}
}

var made = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

// A bundle has bounds, whatever its parts are, and its README says what was cut.
func TestPartsHaveBounds(t *testing.T) {
	p := &Parts{}
	p.Add("../../etc/passwd", "a name with a path", []byte("x"))
	for range 5 {
		p.Add("huge.txt", "too much", make([]byte, PartMax+1))
	}
	for range 2 * partsMax {
		p.Add("small.txt", "one of many", []byte("x"))
	}
	p.Fail("heap.pprof", errors.New("no"))
	var b bytes.Buffer
	if err := p.Write(&b, made, "1.0"); err != nil {
		t.Fatal(err)
	}
	total := 0
	files := unpacked(t, b.Bytes())
	for _, text := range files {
		total += len(text)
	}
	if total > TotalMax+(1<<20) || !strings.Contains(files["README.txt"], "too much (truncated: it was too long)") || files["passwd"] != "x" {
		t.Errorf("%d bytes, README:\n%s", total, files["README.txt"])
	}
}

// The ring has the end of the log, in whole lines, also when several goroutines write.
func TestRing(t *testing.T) {
	r := NewRing(64)
	if _, err := r.Write([]byte("one\n")); err != nil || string(r.Lines()) != "one\n" {
		t.Errorf("%q, %v", r.Lines(), err)
	}
	for range 100 {
		_, _ = r.Write([]byte("0123456789\n"))
	}
	if got := string(r.Lines()); got != strings.Repeat("0123456789\n", 5) {
		t.Errorf("after many lines: %q", got)
	}
	_, _ = r.Write(bytes.Repeat([]byte("x"), 1000))
	if got := r.Lines(); got != nil {
		t.Errorf("a line that is too long: %q", got)
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 500 {
				_, _ = r.Write([]byte("line\n"))
				r.Lines()
			}
		})
	}
	work.Wait()
	if got := string(r.Lines()); strings.Trim(got, "line\n") != "" || len(got) < 50 {
		t.Errorf("lines of several goroutines: %q", got)
	}
}

// No secret of the settings is in a bundle: not as a value, nor in the log, in an error, or in what other parts of the service say.
func TestSecretsStayOut(t *testing.T) {
	const planted = "pl4nted"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cell.secret"), []byte("cell-"+planted), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings.Defaults()
	s.Data = dir
	s.SecretKeyFile = "command:/bin/key --password " + planted + "-a"
	s.Join = "muster-join-" + planted + "-b"
	s.PublicURL = "https://user:" + planted + "-c@muster.example"
	s.NotifyEvents = "https://hooks.example/services/" + planted + "-d?token=" + planted + "-e"
	s.NotifyTopics = "arn:aws:sns:us-east-1:0:t=https://ann:" + planted + "-f@hooks.example/" + planted + "-g"
	s.Objects = "s3://bucket/" + planted + "-h?endpoint=https://key:" + planted + "-i@store.example"
	s.AuditExport = "syslog+tls://siem.example:6514?key=/etc/" + planted + "-j"
	s.OTLPEndpoint = "http://ann:" + planted + "-k@collector.example:4318"
	s.TLSACMEEmail = planted + "-l@example.com"
	log := NewRing(RingBytes)
	for _, text := range []string{s.NotifyEvents, s.NotifyTopics, s.Join, s.SecretKeyFile, s.Objects, s.AuditExport} {
		_, _ = log.Write([]byte(`msg="a library says: dial ` + text + ` failed" words="` + strings.Join(strings.Fields(text), "+") + "\"\n"))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "x", ConstLabels: prometheus.Labels{"receiver": s.AuditExport}}))
	p := Gather(context.Background(), &Source{
		Settings: settings.Loaded{Settings: s, From: func(string) string { return "muster.json:1" }}, Dir: dir, Log: log, Metrics: registry,
		Overview: func(context.Context) (any, error) {
			return map[string]string{"trouble": "no answer from " + s.NotifyEvents}, nil
		},
		Facts: func() map[string]any { return map[string]any{"failure": "dial " + s.Objects} },
	}, 0)
	p.Directory(t.Context(), dir)
	var b bytes.Buffer
	if err := p.Write(&b, made, "1.0"); err != nil {
		t.Fatal(err)
	}
	files := unpacked(t, b.Bytes())
	for name, text := range files {
		if at := strings.Index(text, planted); at >= 0 {
			t.Errorf("%s has a secret: …%s…", name, text[max(0, at-80):min(len(text), at+20)])
		}
	}
	for _, want := range []string{"README.txt", "version.json", "settings.txt", "overview.json", "state.json", "log.txt", "metrics.txt", "machine.json", "heap.pprof", "goroutine.txt", "data-directory.json"} {
		if files[want] == "" {
			t.Errorf("the bundle has no %s", want)
		}
	}
	for _, want := range []string{"join                                 set  (muster.json:1)", "log-level                            info", "limit-fleets                         10000"} {
		if !strings.Contains(files["settings.txt"], want) {
			t.Errorf("settings.txt has no %q:\n%s", want, files["settings.txt"])
		}
	}
	if !strings.Contains(files["data-directory.json"], `"cell.secret"`) {
		t.Errorf("data-directory.json does not list the files: %s", files["data-directory.json"])
	}
}

// The profile of the processor takes its time and no longer; one that is being made elsewhere is reported.
func TestProcessorProfile(t *testing.T) {
	p := &Parts{}
	p.Profile(t.Context(), time.Millisecond)
	names := map[string]int{}
	for _, x := range p.All {
		names[x.Name] = len(x.Content)
	}
	if names["cpu.pprof"] == 0 || names["heap.pprof"] == 0 || names["mutex.pprof"] == 0 {
		t.Errorf("got %v", names)
	}
}

// What a disk or a stuck lock keeps is missing from the bundle, with the reason; everything else is there.
func TestSilentParts(t *testing.T) { synctest.Test(t, testSilentParts) }

func testSilentParts(t *testing.T) {
	silent := make(chan struct{})
	defer close(silent)
	began := time.Now()
	p := Gather(t.Context(), &Source{
		Settings: settings.Loaded{Settings: settings.Defaults(), From: func(string) string { return "" }}, Dir: t.TempDir(), Metrics: prometheus.NewRegistry(),
		Overview: func(context.Context) (any, error) { <-silent; return nil, nil },
		Facts:    func() map[string]any { panic("broken") },
	}, 0)
	if took := time.Since(began); took > 2*gatherMax {
		t.Errorf("it took %v", took)
	}
	files := map[string]string{}
	for _, x := range p.All {
		files[x.Name] = string(x.Content)
	}
	for name, want := range map[string]string{"overview.json.error.txt": "a disk does not answer", "state.json.error.txt": "panic: broken", "machine.json": "heapBytes", "goroutine.txt": "TestSilentParts"} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q: %.300s", name, want, files[name])
		}
	}
}
