package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestBillNamesLinkedModules: the test binary links this module's dependencies, so its bill of materials must name them with checksums.
func TestBillNamesLinkedModules(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(binary, content, 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeBill(binary, "0123abc", info); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(binary + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if got := bom.Metadata.Component.Version; got != "0123abc" {
		t.Errorf("the bill is of commit %q", got)
	}
	if got, want := len(*bom.Components), len(info.Deps)+1; got != want {
		t.Errorf("%d components, want the standard library and %d modules", got, want-1)
	}
	linked := slices.IndexFunc(*bom.Components, func(c cdx.Component) bool { return c.Name == "github.com/CycloneDX/cyclonedx-go" })
	if linked < 0 {
		t.Fatalf("the linked module is missing: %+v", *bom.Components)
	}
	if c := (*bom.Components)[linked]; c.Version == "" || c.Hashes == nil {
		t.Errorf("component %+v, want a version and a checksum", c)
	}
}

func TestReplacedModules(t *testing.T) {
	directory := &debug.Module{Path: "example.org/a", Version: "v0.1.0", Replace: &debug.Module{Path: "./a", Version: "(devel)"}}
	fork := &debug.Module{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1", Sum: "h1:AA=="}}
	for module, want := range map[*debug.Module]string{directory: "pkg:golang/example.org/a@v0.1.0", fork: "pkg:golang/example.org/fork@v1.0.1"} {
		if got := component(module).PackageURL; got != want {
			t.Errorf("%s: got %s, want %s", module.Path, got, want)
		}
	}
}

func TestStandInsAreNotListed(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v0.1.0", Replace: &debug.Module{Path: "./internal/a", Version: "(devel)"}},
		{Path: "example.org/b", Version: "v0.1.0"},
	}}
	if got := *describe("muster", "", "", info).Components; len(got) != 2 || got[1].Name != "example.org/b" {
		t.Errorf("%+v, want the standard library and example.org/b", got)
	}
}

func TestNoBillForWhatIsNoGoBinary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&release{source: "../.."}).target(file); err == nil {
		t.Error("a text file got a bill of materials")
	}
	if _, err := os.Stat(file + ".cdx.json"); err == nil {
		t.Error("a refused file left a bill of materials behind")
	}
}
