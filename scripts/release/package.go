package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // makes packages for Debian
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // and for Red Hat
)

func (t *target) deb() (string, error) { return t.pack1("deb") }
func (t *target) rpm() (string, error) { return t.pack1("rpm") }

// pack1 makes one package. It contains the units, the settings and other files for the system's directories.
func (t *target) pack1(format string) (string, error) {
	work, err := os.MkdirTemp("", "muster-package-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	info, err := t.describe(format, work)
	if err != nil {
		return "", err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	return t.create(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}

func (t *target) describe(format, work string) (*nfpm.Info, error) {
	from := func(name string) string { return filepath.Join(t.source, "deploy", "package", name) }
	info := &nfpm.Info{
		Name: "muster", Arch: t.arch, Platform: "linux", Version: packageVersion(t.version), Release: "1", VersionSchema: "semver", MTime: t.time,
		Section: "net", Priority: "optional", Maintainer: "The Muster authors <packages@musterhq.dev>", Vendor: "Muster", Homepage: "https://github.com/musterhq/muster", License: "Apache-2.0",
		Description:     "game session service for one's own machines\nMuster starts game sessions on game servers, reserves seats in them and\nknows where every player is. It speaks the Amazon GameLift API and the\nprotocol of the GameLift server SDK. This package has the service and the\nagent that runs on hosts of game servers.",
		DisableGlobbing: true,
	}
	info.Scripts = nfpm.Scripts{PostInstall: from("postinst"), PreRemove: from("prerm"), PostRemove: from("postrm")}
	info.Deb.Compression, info.RPM.Compression = "gzip", "gzip" // every system can read it
	info.RPM.BuildHost, info.RPM.Group = "musterhq.dev", "System Environment/Daemons"
	info.Recommends = []string{"ca-certificates"}
	add := func(source, destination, kind string, mode os.FileMode) {
		info.Contents = append(info.Contents, &files.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: t.time},
		})
	}
	// put writes a file that exists nowhere else.
	put := func(name string, content []byte, destination, kind string) error {
		path := filepath.Join(work, name)
		add(path, destination, kind, 0o644)
		return os.WriteFile(path, content, 0o644)
	}
	zsh, docs, document := "/usr/share/zsh/vendor-completions/_muster", "/usr/share/doc/muster/", files.TypeFile
	if format == "rpm" {
		zsh, document = "/usr/share/zsh/site-functions/_muster", files.TypeRPMDoc
		for _, dir := range []string{"/etc/muster", "/usr/share/doc/muster", "/usr/share/licenses/muster"} { // a removal removes only what the package owns
			add("", dir, files.TypeDir, 0o755)
		}
	}
	add(t.binary, "/usr/bin/muster", files.TypeFile, 0o755)
	for _, unit := range units {
		add(filepath.Join(t.source, "deploy", "systemd", unit), "/usr/lib/systemd/system/"+unit, files.TypeFile, 0o644)
	}
	add(from("sysusers.conf"), "/usr/lib/sysusers.d/muster.conf", files.TypeFile, 0o644)
	add(from("muster.json"), "/etc/muster/muster.json", files.TypeConfigNoReplace, 0o640)
	add(from("agent.env"), "/etc/muster/agent.env", files.TypeConfigNoReplace, 0o640)
	for name, destination := range map[string]string{"muster.bash": "/usr/share/bash-completion/completions/muster", "_muster": zsh, "muster.fish": "/usr/share/fish/vendor_completions.d/muster.fish"} {
		add(filepath.Join(t.shared, "completions", name), destination, files.TypeFile, 0o644)
	}
	pages, err := filepath.Glob(filepath.Join(t.shared, "man1", "*.1"))
	if err != nil {
		return nil, err
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path) + ".gz"
		if err := put(name, zipped(text), "/usr/share/man/man1/"+name, document); err != nil {
			return nil, err
		}
	}
	changes, err := os.ReadFile(filepath.Join(t.source, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	if err := put("NEWS.gz", zipped(changes), docs+"NEWS.gz", document); err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(t.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	if format == "deb" {
		err = put("copyright", copyright(licence, t.licences), docs+"copyright", files.TypeFile)
	} else {
		add(filepath.Join(t.source, "LICENSE"), "/usr/share/licenses/muster/LICENSE", files.TypeRPMLicence, 0o644)
		err = put("THIRD-PARTY-LICENSES.txt", t.licences, "/usr/share/licenses/muster/THIRD-PARTY-LICENSES.txt", files.TypeRPMLicence)
	}
	return info, err
}

// copyright returns the file of this name for Debian packages.
func copyright(licence, others []byte) []byte {
	return []byte("Muster: https://github.com/musterhq/muster\n\nCopyright The Muster authors\n\n" + strings.TrimSpace(string(licence)) + "\n\n" + string(others))
}

func zipped(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                  // writing to a buffer never fails
	_ = w.Close()
	return b.Bytes()
}
