// Command release packs the binaries of a release for installation: into archives, packages for Debian and Red Hat, and container images, each with a bill of materials, and checksums of all.
//
// The same commit gives the same bytes on every machine: entries are sorted, owned by root, and have the time of the commit.
//
//	go run . -source ../.. -version v0.2.0 -revision 0123abc -time 1700000000 -shared DIR -to DIR BINARY...
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var r release
	flag.StringVar(&r.source, "source", "../..", "directory of the repository")
	flag.StringVar(&r.version, "version", "", "what git describe says: v0.2.0, or v0.2.0-3-gabcdef0 between two releases")
	flag.StringVar(&r.revision, "revision", "", "the commit")
	seconds := flag.Int64("time", 0, "time of the commit, in seconds since 1970")
	flag.StringVar(&r.shared, "shared", "", "directory with man1 and completions, as muster writes them")
	flag.StringVar(&r.to, "to", "", "directory for the results")
	flag.Parse()
	r.time = time.Unix(*seconds, 0).UTC()
	if err := r.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release has the values that all targets share.
type release struct {
	source   string
	version  string
	revision string
	time     time.Time
	shared   string
	to       string
	shown    io.Writer // names of the results; nil: standard output
}

// target is one binary.
type target struct {
	*release
	binary   string // path
	os, arch string
	info     *buildinfo.BuildInfo
	licences []byte // of the linked modules
}

func (r *release) run(binaries []string) error {
	if r.version == "" || r.revision == "" || r.shared == "" || r.to == "" || len(binaries) == 0 {
		return errors.New("want -version, -revision, -shared, -to and at least one binary")
	}
	for _, binary := range binaries {
		t, err := r.target(binary)
		if err != nil {
			return err
		}
		if err := t.pack(); err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
	}
	return r.sums()
}

func (r *release) target(binary string) (*target, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	t := &target{release: r, binary: binary, info: info, os: setting(info, "GOOS"), arch: setting(info, "GOARCH")}
	t.licences, err = licences(info)
	return t, err
}

// pack makes all artefacts for the target's system.
func (t *target) pack() error {
	makers := []func() (string, error){t.archive}
	if t.os == "linux" {
		makers = append(makers, t.deb, t.rpm, t.image)
	}
	for _, packed := range makers {
		path, err := packed()
		if err != nil {
			return err
		}
		if err := writeBill(path, t.revision, t.info); err != nil {
			return err
		}
		shown := t.shown
		if shown == nil {
			shown = os.Stdout
		}
		fmt.Fprintln(shown, filepath.Base(path))
	}
	return writeBill(t.binary, t.revision, t.info)
}

// name returns the name of the target's archive, without its suffix.
func (t *target) name() string { return fmt.Sprintf("muster-%s-%s-%s", t.version, t.os, t.arch) }

// create writes a result.
func (r *release) create(name string, write func(w io.Writer) error) (path string, err error) {
	path = filepath.Join(r.to, name)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return path, write(f)
}

// sums writes the checksums of everything in the directory of results.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.to) // in the order of their names
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == "SHA256SUMS" {
			continue
		}
		sum, err := digest(filepath.Join(r.to, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.to, "SHA256SUMS"), []byte(b.String()), 0o644)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// file is an entry of an archive or a layer.
type file struct {
	name    string // with / and without one at the beginning
	mode    fs.FileMode
	content []byte // nil: a directory
	uid     int
}

// documents returns the files that every archive contains besides the binary.
func (t *target) documents() ([]file, error) {
	var list []file
	add := func(name, path string) error {
		content, err := os.ReadFile(path)
		list = append(list, file{name: name, mode: 0o644, content: content})
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		if err := add(name, filepath.Join(t.source, name)); err != nil {
			return nil, err
		}
	}
	list = append(list, file{name: "THIRD-PARTY-LICENSES.txt", mode: 0o644, content: t.licences})
	for _, dir := range []string{"man1", "completions"} {
		names, err := filepath.Glob(filepath.Join(t.shared, dir, "*"))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("%s has no files in %s: %w", t.shared, dir, err)
		}
		for _, path := range names {
			if err := add(dir+"/"+filepath.Base(path), path); err != nil {
				return nil, err
			}
		}
	}
	if t.os == "linux" {
		for _, unit := range units {
			if err := add("systemd/"+unit, filepath.Join(t.source, "deploy", "systemd", unit)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

var units = []string{"muster.service", "muster-agent.service"}

func sorted(list []file) []file {
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return list
}

// described matches a version between two releases in git's form: the release, the number of commits after it, and the commit.
var described = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

// packageVersion returns the version in the form of package managers, in which a commit after a release is later than the release.
func packageVersion(version string) string {
	m := described.FindStringSubmatch(version)
	if m == nil { // no release is known: only a commit
		return "0.0.0+" + regexp.MustCompile(`[^0-9A-Za-z]+`).ReplaceAllString(version, ".")
	}
	switch after := strings.Trim(m[2]+"."+m[3]+strings.Replace(m[4], "-", ".", 1), "."); after {
	case "":
		return m[1]
	default:
		return m[1] + "+" + after
	}
}
