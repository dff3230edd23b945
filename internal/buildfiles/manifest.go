// Package buildfiles says what a build consists of: a manifest of its files, each cut into parts that are named by their digest, so that
// builds share the parts that are equal. The service, the agent and the command line use it.
package buildfiles

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Bounds of a build.
const (
	FilesMax    = 100_000   // files of a build
	SizeMax     = 100 << 30 // bytes of its files in total
	ManifestMax = 64 << 20  // bytes of an encoded manifest
)

// Manifest lists the files of a build, in the order of their paths. Directories have no entries: an empty one is not part of a build.
type Manifest struct {
	Files []File `json:"files"`
}

// File is one file of a build.
type File struct {
	Path       string `json:"path"` // relative, with slashes
	Executable bool   `json:"executable,omitempty"`
	Size       int64  `json:"size"`
	Digest     Digest `json:"digest"` // of the whole file
	Parts      []Part `json:"parts,omitempty"`
}

// Part is a piece of a file, and the unit in which content is stored and fetched.
type Part struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"` // 1 to PartMax
}

// Size is the sum of the sizes of all files, in bytes.
func (m *Manifest) Size() (sum int64) {
	for i := range m.Files {
		sum += m.Files[i].Size
	}
	return sum
}

// Parts calls f once for each part of the build, however often it occurs, until f returns an error.
func (m *Manifest) Parts(f func(Part) error) error {
	seen := map[Digest]struct{}{}
	for i := range m.Files {
		for _, p := range m.Files[i].Parts {
			if _, ok := seen[p.Digest]; ok {
				continue
			}
			seen[p.Digest] = struct{}{}
			if err := f(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Encode checks a manifest and writes it. Equal manifests have equal bytes, so a build that is pushed twice is stored once.
func (m *Manifest) Encode() ([]byte, error) {
	slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	if err := m.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(m)
	if err == nil && len(text) > ManifestMax {
		err = reject("manifest of %d bytes; want at most %d", len(text), ManifestMax)
	}
	return text, err
}

// ParseManifest reads what Encode writes, and refuses what Encode would.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > ManifestMax {
		return nil, reject("manifest of %d bytes; want at most %d", len(text), ManifestMax)
	}
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, reject("manifest: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, reject("manifest: want nothing after the first value")
	}
	return &m, m.check()
}

// Rejected is the reason for which a build is not accepted: the fault of those who made it.
type Rejected struct{ Reason string }

func (r *Rejected) Error() string { return r.Reason }

func reject(format string, args ...any) error { return &Rejected{fmt.Sprintf(format, args...)} }

func (m *Manifest) check() error {
	if len(m.Files) == 0 {
		return reject("the build has no files")
	}
	if len(m.Files) > FilesMax {
		return reject("%d files; want at most %d", len(m.Files), FilesMax)
	}
	names, total, last := newNames(), int64(0), ""
	for i := range m.Files {
		f := &m.Files[i]
		if i > 0 && f.Path <= last {
			return reject("file %.200q comes after %.200q; want each path once, in order", f.Path, last)
		}
		last = f.Path
		if err := names.add(f.Path); err != nil {
			return err
		}
		if err := f.check(); err != nil {
			return err
		}
		if total += f.Size; total > SizeMax {
			return reject("more than %d bytes in all files", int64(SizeMax))
		}
	}
	return nil
}

func (f *File) check() error {
	sum := int64(0)
	for _, p := range f.Parts {
		if p.Size < 1 || p.Size > PartMax {
			return reject("file %.200q: part of %d bytes; want 1 to %d", f.Path, p.Size, PartMax)
		}
		sum += p.Size
	}
	if f.Size != sum {
		return reject("file %.200q: size %d; its parts have %d bytes", f.Path, f.Size, sum)
	}
	if len(f.Parts) == 1 && f.Digest != f.Parts[0].Digest {
		return reject("file %.200q: digest %s; its only part has %s", f.Path, f.Digest, f.Parts[0].Digest)
	}
	return nil
}

const (
	PathMax  = 1024 // bytes of a path, as in the launch path of a runtime configuration
	depthMax = 64   // parts of a path
)

// CheckPath refuses a path that could leave the directory of its build, or be another file than it seems, on any system.
func CheckPath(path string) error {
	if path == "" || len(path) > PathMax {
		return reject("path %.200q has %d bytes; want 1 to %d", path, len(path), PathMax)
	}
	parts := strings.Split(path, "/")
	if len(parts) > depthMax {
		return reject("path %.200q has %d parts; want at most %d", path, len(parts), depthMax)
	}
	for _, name := range parts {
		switch {
		case name == "":
			return reject("path %.200q: want a relative path without empty parts", path)
		case name == "." || name == "..":
			return reject("path %.200q: want a path without . and ..", path)
		case len(name) > 255:
			return reject("path %.200q: a part has %d bytes; want at most 255", path, len(name))
		case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || strings.ContainsRune(`\:*?"<>|`, c) || c == '\uFFFD' }):
			return reject(`path %.200q: want printable UTF-8 without \ : * ? " < > |, which other systems do not allow in names`, path)
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return reject("path %.200q: a part ends with a dot or a space, which Windows removes", path)
		case reserved(name):
			return reject("path %.200q: Windows reserves the name %.20q for a device", path, name)
		}
	}
	return nil
}

// reserved reports whether Windows takes a name for a device, in any directory and with any extension.
func reserved(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	rest, ok := strings.CutPrefix(base, "COM")
	if !ok {
		rest, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && (len(rest) == 1 && rest[0] >= '0' && rest[0] <= '9' || rest == "¹" || rest == "²" || rest == "³")
}

// names finds paths that would be one file on some system.
type names struct {
	folded map[string]folded
}

type folded struct {
	path string // as it was written first
	dir  bool
}

func newNames() names { return names{folded: map[string]folded{}} }

// add notes a file. Systems that ignore case would write one file over another, or need a file and a directory of one name.
func (n names) add(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	if was, ok := n.folded[fold(path)]; ok {
		return reject("path %.200q also occurs as %.200q, which is the same file where case does not count", path, was.path)
	}
	n.folded[fold(path)] = folded{path: path}
	for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
		dir := path[:at]
		was, ok := n.folded[fold(dir)]
		switch {
		case !ok:
			n.folded[fold(dir)] = folded{dir, true}
		case !was.dir:
			return reject("path %.200q: %.200q is a file", path, was.path)
		case was.path != dir:
			return reject("path %.200q: the directory also occurs as %.200q", path, was.path)
		default:
			return nil // its parents are known, too
		}
	}
	return nil
}

func fold(path string) string { return strings.ToLower(strings.ToUpper(path)) }
