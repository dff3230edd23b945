package doors

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// languages are the packages of the core that clients have no noun for: languages, algorithms and forms of storage.
var languages = []string{"kernel", "catalog", "keyvalue", "quota", "search", "searchindex", "ruleset", "matcher", "spelling", "excerpt", "chunk", "wire", "sorted", "answers", "commandcodec", "exit"}

// mapped returns the packages that the table of ARCHITECTURE.md lists.
func mapped(page string) (packages []string) {
	_, table, _ := strings.Cut(page, "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			packages = append(packages, found[1])
		}
	}
	return packages
}

// unequal reports the entries that are in one list only, or twice in one.
func unequal(want, got []string) (complaints []string) {
	for _, name := range want {
		if !slices.Contains(got, name) {
			complaints = append(complaints, "missing: "+name)
		}
	}
	for i, name := range got {
		if !slices.Contains(want, name) {
			complaints = append(complaints, "does not exist: "+name)
		}
		if slices.Contains(got[:i], name) {
			complaints = append(complaints, "twice: "+name)
		}
	}
	return complaints
}

// TestMap: the table of ARCHITECTURE.md lists the packages that exist, each once.
func TestMap(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range list(t) {
		want = append(want, ours(p.ImportPath))
	}
	for _, complaint := range unequal(want, mapped(string(page))) {
		t.Errorf("the packages of ARCHITECTURE.md: %s", complaint)
	}
}

// TestEveryPackageHasADoor: the lists of the doors name existing packages, and every package of the core is a
// noun, the cell, or a language.
func TestEveryPackageHasADoor(t *testing.T) {
	var core, internal []string
	for _, p := range list(t) {
		path := ours(p.ImportPath)
		if name, ok := strings.CutPrefix(path, "internal/domain/"); ok && !strings.Contains(name, "/") {
			core = append(core, name)
		} else if name, ok := strings.CutPrefix(path, "internal/"); ok && !strings.Contains(name, "/") {
			internal = append(internal, name)
		}
	}
	for _, complaint := range unequal(core, slices.Concat(nouns, languages, []string{"cell"})) {
		t.Errorf("the nouns and languages of the core: %s", complaint)
	}
	for _, frontEnd := range frontEnds {
		if !slices.Contains(internal, frontEnd) {
			t.Errorf("the front ends: does not exist: %s", frontEnd)
		}
	}
}

func TestUnequalListsAreNoticed(t *testing.T) {
	page := "# X\n\n## Packages\n\n| package | what |\n| --- | --- |\n| `a`, `b` | uses `c` |\n| `b` | |\n| `d` | |\n\n## Doors\n\n| `e` | |\n"
	if got := mapped(page); !slices.Equal(got, []string{"a", "b", "b", "d"}) {
		t.Errorf("the table lists %q", got)
	}
	want := []string{"missing: c", "twice: b", "does not exist: d"}
	if got := unequal([]string{"a", "b", "c"}, mapped(page)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
