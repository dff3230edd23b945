package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// cannotRun skips a test for which this machine lacks something that `make packages` installs, and fails it there.
func cannotRun(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("PACKAGE_TOOLS") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// muster returns the binary that make build built.
func muster(t *testing.T) string { t.Helper(); return built(t, "muster") }

// small returns a smaller binary, for tests that do not depend on the binary: packing muster takes seconds.
func small(t *testing.T) string { t.Helper(); return built(t, "arena-server-bare") }

func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no bin/%s: make build", name)
	}
	return path
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// made has the artefacts, for all tests.
var made struct {
	dir       string
	artefacts map[string]string // by binary, version and kind
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "muster-release-")
	if err != nil {
		panic(err)
	}
	made.dir, made.artefacts = dir, map[string]string{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// artefact returns the archive, the deb, the rpm or the image of a binary as muster at a version.
func artefact(t *testing.T, binary, version, kind string) string {
	t.Helper()
	key := binary + " " + version + " " + kind
	if made.artefacts[key] == "" {
		to := filepath.Join(made.dir, filepath.Base(binary))
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		r := newRelease(t, version, to)
		target, err := r.target(copied(t, binary, r))
		if err != nil {
			t.Fatal(err)
		}
		path, err := map[string]func() (string, error){"archive": target.archive, "deb": target.deb, "rpm": target.rpm, "image": target.image}[kind]()
		if err != nil {
			t.Fatal(err)
		}
		made.artefacts[key] = path
	}
	return made.artefacts[key]
}

// newRelease returns a release into a directory, with the files that all targets share.
func newRelease(t *testing.T, version, to string) *release {
	t.Helper()
	shared := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	run(t, muster(t), "man", filepath.Join(shared, "man1"))
	if err := os.Mkdir(filepath.Join(shared, "completions"), 0o755); err != nil {
		t.Fatal(err)
	}
	for shell, name := range map[string]string{"bash": "muster.bash", "zsh": "_muster", "fish": "muster.fish"} {
		script := run(t, muster(t), "completion", shell)
		if err := os.WriteFile(filepath.Join(shared, "completions", name), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &release{source: "../..", version: version, revision: "0123abc", time: time.Unix(1700000000, 0).UTC(), shared: shared, to: to, shown: io.Discard}
}

// copied copies a binary to its place in the release.
func copied(t *testing.T, binary string, r *release) string {
	t.Helper()
	copied := filepath.Join(r.to, "muster-"+r.version+"-linux-amd64")
	if strip, err := exec.LookPath("strip"); err == nil { // as in releases, and smaller
		run(t, strip, "-o", copied, binary)
	} else {
		run(t, "cp", binary, copied)
	}
	return copied
}

// TestSameBytes: the same binary gives the same artefacts, and the checksums match.
func TestSameBytes(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, to := range []string{first, second} {
		r := newRelease(t, "v0.2.0", to)
		if err := r.run([]string{copied(t, small(t), r)}); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(second, "SHA256SUMS"))
	if err != nil || !bytes.Equal(sums, again) {
		t.Errorf("%v; the first time\n%s\nthe second time\n%s", err, sums, again)
	}
	for _, name := range []string{"muster-v0.2.0-linux-amd64.tar.gz", "muster_0.2.0-1_amd64.deb", "muster-0.2.0-1.x86_64.rpm", "muster-v0.2.0-linux-amd64.oci.tar"} {
		for _, suffix := range []string{"\n", ".cdx.json\n"} {
			if !strings.Contains(string(sums), "  "+name+suffix) {
				t.Errorf("no checksum of %s%s:\n%s", name, strings.TrimSpace(suffix), sums)
			}
		}
	}
	check := exec.Command("sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = first
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// entriesOf reads an archive, and checks that it does not depend on the machine.
func entriesOf(t *testing.T, r io.Reader) map[string]*tar.Header {
	t.Helper()
	all, before := map[string]*tar.Header{}, ""
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if name <= before || h.ModTime.Unix() != 1700000000 || h.Uname != "" || h.Uid != 0 && h.Uid != userID {
			t.Errorf("%s behind %s, of %d %q, at %v", h.Name, before, h.Uid, h.Uname, h.ModTime)
		}
		before, all[h.Name] = name, h
	}
}

func unzip(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestContents(t *testing.T) {
	const version, name = "v0.2.0-12-gabcdef0", "muster-v0.2.0-12-gabcdef0-linux-amd64"
	entries := entriesOf(t, unzip(t, artefact(t, muster(t), version, "archive")))
	for _, want := range []string{"muster", "LICENSE", "README.md", "THIRD-PARTY-LICENSES.txt", "man1/muster.1", "man1/muster-serve.1", "completions/_muster", "completions/muster.bash", "systemd/muster.service"} {
		if entries[name+"/"+want] == nil {
			t.Errorf("the archive has no %s", want)
		}
	}
	if entries[name+"/muster"].Mode != 0o755 {
		t.Errorf("mode %o of the binary", entries[name+"/muster"].Mode)
	}

	installed := []string{"/usr/bin/muster", "/usr/lib/systemd/system/muster.service", "/usr/lib/sysusers.d/muster.conf", "/etc/muster/muster.json", "/usr/share/man/man1/muster-serve.1.gz", "/usr/share/bash-completion/completions/muster"}
	deb := artefact(t, muster(t), version, "deb")
	list := run(t, "dpkg-deb", "--contents", deb)
	for _, path := range installed {
		if !strings.Contains(list, " ."+path+"\n") {
			t.Errorf("the .deb has no %s", path)
		}
	}
	if out := run(t, "dpkg", "--compare-versions", "0.2.0+12.abcdef0-1", "gt", "0.2.0-1"); out != "" {
		t.Error(out)
	}
	t.Run("lintian", func(t *testing.T) {
		lintian, err := exec.LookPath("lintian")
		if err != nil {
			cannotRun(t, "no lintian")
		}
		if os.Getenv("PACKAGE_TOOLS") == "" { // make test: the binary matters little, and a large one takes half a minute
			deb = artefact(t, small(t), version, "deb")
		}
		// A binary without libc, in Go, by another way than Debian's; packages of upstreams close no bugs of Debian.
		check := exec.Command(lintian, "--allow-root", "--fail-on", "error,warning", "--suppress-tags", strings.Join([]string{
			"statically-linked-binary", "no-changelog", "copyright-without-copyright-notice", "maintainer-script-calls-systemctl", "non-standard-file-perm",
			"copyright-file-contains-full-apache-2-license", "copyright-not-using-common-license-for-apache2",
		}, ","), deb)
		check.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // lintian leaves a file there
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("rpm", func(t *testing.T) {
		rpm, err := exec.LookPath("rpm")
		if err != nil {
			cannotRun(t, "no rpm")
		}
		path := artefact(t, muster(t), version, "rpm")
		list := run(t, rpm, "-qpl", path)
		for _, want := range append(installed, "/usr/share/licenses/muster/LICENSE", "/usr/share/zsh/site-functions/_muster") {
			if !strings.Contains(list, want+"\n") {
				t.Errorf("the .rpm has no %s", want)
			}
		}
		if out := run(t, rpm, "-qpc", path); out != "/etc/muster/agent.env\n/etc/muster/muster.json\n" {
			t.Errorf("settings that an update keeps: %s", out)
		}
		if out := run(t, rpm, "-qpd", path); !strings.Contains(out, "/usr/share/man/man1/muster-serve.1.gz\n") || !strings.Contains(out, "/usr/share/doc/muster/NEWS.gz\n") {
			t.Errorf("documentation, which an installation may leave out: %s", out)
		}
		if out := run(t, rpm, "-qpL", path); !strings.Contains(out, "/usr/share/licenses/muster/LICENSE\n") {
			t.Errorf("licences: %s", out)
		}
		for _, dir := range []string{"/etc/muster", "/usr/share/doc/muster", "/usr/share/licenses/muster"} {
			if !strings.Contains(list, dir+"\n") {
				t.Errorf("the .rpm does not own %s, so its removal would leave it", dir)
			}
		}
		if out := run(t, rpm, "-K", "--nosignature", path); !strings.Contains(out, "digests OK") {
			t.Error(out)
		}
	})
}

func TestLicences(t *testing.T) {
	info, err := buildinfo.ReadFile(muster(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := licences(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo go1", "\ngithub.com/alecthomas/kong@", "\ngithub.com/cockroachdb/pebble", "Redistribution and use in source and binary"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, module := range info.Deps { // as scripts/release-build.sh links it
		if module.Path == "github.com/alecthomas/kong" {
			module.Replace = &debug.Module{Path: "./bin/prune/kong", Version: "(devel)"}
		}
	}
	if released, err := licences(info); err != nil || !bytes.Equal(released, text) {
		t.Errorf("the licences of a release differ: %v", err)
	}
	if err := addLicences(&bytes.Buffer{}, "example.org/a@v1", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no file with its licence") {
		t.Errorf("a module without a licence: %v", err)
	}
}

func TestPackageVersion(t *testing.T) {
	for version, want := range map[string]string{"v0.2.0": "0.2.0", "v0.2.0-12-gabcdef0": "0.2.0+12.abcdef0", "v0.2.0-12-gabcdef0-dirty": "0.2.0+12.abcdef0.dirty", "v0.2.0-dirty": "0.2.0+dirty", "abcdef0": "0.0.0+abcdef0"} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

func TestZip(t *testing.T) {
	var first, second bytes.Buffer
	list := []file{{name: "a/muster.exe", mode: 0o755, content: []byte("x")}}
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := writeZip(b, list, time.Unix(1700000000, 0).UTC()); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil || len(archive.File) != 1 || archive.File[0].Name != "a/muster.exe" || archive.File[0].Mode() != 0o755 || archive.File[0].Modified.Unix() != 1700000000 {
		t.Errorf("%v, %+v", err, archive)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same file differ")
	}
}

// TestImage unpacks the image as a runtime does, and checks every digest on the way.
func TestImage(t *testing.T) {
	layout, root := t.TempDir(), t.TempDir()
	run(t, "tar", "-xf", artefact(t, muster(t), "v0.2.0", "image"), "-C", layout)
	read := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(layout, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "blobs/") && sha(text) != "sha256:"+filepath.Base(name) {
			t.Errorf("%s has another digest", name)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	type descriptor struct {
		MediaType, Digest string
		Size              int64
		Platform          struct{ OS, Architecture string }
	}
	var index struct{ Manifests []descriptor }
	read("index.json", &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform.Architecture != "amd64" {
		t.Fatalf("%+v", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	read(blobName(index.Manifests[0].Digest), &manifest)
	var config struct {
		Config struct {
			User        string
			Env         []string
			Healthcheck struct{ Test []string }
			Labels      map[string]string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	read(blobName(manifest.Config.Digest), &config)
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Healthcheck.Test, []string{"CMD", "/usr/bin/muster", "health"}) {
		t.Errorf("%+v", config.Config)
	}
	if got := config.Config.Labels["org.opencontainers.image.revision"]; got != "0123abc" {
		t.Errorf("the image is of commit %q", got)
	}
	plain, err := io.ReadAll(unzip(t, filepath.Join(layout, blobName(manifest.Layers[0].Digest))))
	if err != nil || sha(plain) != config.RootFS.DiffIDs[0] {
		t.Errorf("%v; the layer has the digest %s, want %s", err, sha(plain), config.RootFS.DiffIDs[0])
	}
	entries := entriesOf(t, bytes.NewReader(plain))
	if h := entries["var/lib/muster/"]; h == nil || h.Uid != userID || h.Mode != 0o700 {
		t.Errorf("the data directory: %+v", h)
	}
	if h := entries["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("the directory of temporary files, in which no user may replace the files of another: %+v", h)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(authorities()) {
		t.Error("the authorities cannot be read")
	}

	if os.Geteuid() != 0 {
		cannotRun(t, "not root")
	}
	run(t, "tar", "--same-owner", "-xzf", filepath.Join(layout, blobName(manifest.Layers[0].Digest)), "-C", root)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	out := run(t, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "testdata/image.sh", root)
	if !strings.Contains(out, "stopped in order") {
		t.Error(out)
	}
}

// TestInstall installs the .deb, runs what it installed, updates, removes and purges it.
func TestInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		cannotRun(t, "not root")
	}
	if _, err := exec.LookPath("dpkg"); err != nil {
		cannotRun(t, "no dpkg")
	}
	out := run(t, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "testdata/install.sh",
		artefact(t, muster(t), "v0.2.0", "deb"), artefact(t, muster(t), "v0.2.0-12-gabcdef0", "deb"), t.TempDir())
	t.Log(out)
}

// TestSystemd repeats TestInstall on a real systemd, and tests what requires systemd. SYSTEMD_ROOT is the root file system of a Debian, which is not modified.
func TestSystemd(t *testing.T) {
	root := os.Getenv("SYSTEMD_ROOT")
	if root == "" {
		t.Skip("make systemd")
	}
	scripts, out := t.TempDir(), t.TempDir()
	run(t, "cp", "testdata/systemd.sh", scripts)
	run(t, "cp", artefact(t, muster(t), "v0.2.0", "deb"), filepath.Join(scripts, "old.deb"))
	run(t, "cp", artefact(t, muster(t), "v0.2.0-12-gabcdef0", "deb"), filepath.Join(scripts, "new.deb"))
	run(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
		"-keyout", filepath.Join(scripts, "tls.key"), "-out", filepath.Join(scripts, "tls.crt"))
	game := exec.Command("go", "build", "-o", filepath.Join(scripts, "game"), "./testdata/game")
	game.Env = append(os.Environ(), "CGO_ENABLED=0")
	if runtime.GOARCH == "amd64" {
		game.Env = append(game.Env, "GOARCH=386") // many dedicated servers still have 32 bits
	}
	if out, err := game.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	boot := exec.Command("systemd-nspawn", "--quiet", "--directory="+root, "--volatile=overlay", "--boot", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
		"--bind-ro="+scripts+":/test", "--bind="+out+":/out",
		"systemd.unified_cgroup_hierarchy=1", "systemd.run=/test/systemd.sh", "systemd.run_success_action=exit", "systemd.run_failure_action=exit")
	boot.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1") // also where this machine has the older one
	said, err := boot.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(out, "log"))
	t.Logf("%s", log)
	if err != nil || !bytes.HasSuffix(log, []byte("-- passed\n")) {
		t.Errorf("%v: %s", err, said)
	}
}
