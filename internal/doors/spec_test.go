package doors

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// cited finds citations of the specification: docs/spec/page.md#anchor, and "and #anchor" behind one, of the same page.
	cited = regexp.MustCompile(`docs/spec/([\w-]+\.md)(?:#([\w-]+))?|(?:and|,) #([\w-]+)`)
	// linked finds the targets of Markdown links to a page of ours.
	linked = regexp.MustCompile(`\]\(([^)\s:]*\.md)?(?:#([\w-]+))?\)`)
	// numbered finds invariants, tables and races by their numbers.
	numbered = regexp.MustCompile(`\b[ITR]\d{1,2}\b`)
	// ruled finds behaviours of docs/behaviours.md by their numbers.
	ruled = regexp.MustCompile(`\bB\d{3}\b`)
	// vague finds citations that name no page.
	vague = regexp.MustCompile(`(?i)\bspecification\b|SDK protocol, \d|protocol notes|\bnotes, \d`)
)

// numberedIn are the folders whose Go files name invariants, tables and races by number alone.
var numberedIn = []string{"internal/domain/cell", "internal/domain/flow", "internal/playerapi", "internal/playerwatch", "internal/sim"}

// specification is what can be cited.
type specification struct {
	anchors    map[string]map[string]bool // of the pages in docs/spec
	numbers    map[string]bool            // "I12", "T4", "R6"
	behaviours map[string]bool            // "B012"
}

func readSpecification(root string) (*specification, error) {
	s := &specification{anchors: map[string]map[string]bool{}, numbers: map[string]bool{}, behaviours: map[string]bool{}}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "spec", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		anchors := map[string]bool{}
		for _, found := range regexp.MustCompile(`<a id="([\w-]+)">`).FindAllStringSubmatch(string(text), -1) {
			if anchors[found[1]] {
				return nil, fmt.Errorf("%s has the anchor %q twice", page, found[1])
			}
			anchors[found[1]] = true
			if number := strings.ToUpper(found[1]); numbered.FindString(number) == number {
				s.numbers[number] = true
			}
		}
		s.anchors[filepath.Base(page)] = anchors
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "behaviours.md"))
	for _, found := range regexp.MustCompile(`(?m)^\*\*(B\d{3})\.`).FindAllStringSubmatch(string(text), -1) {
		if s.behaviours[found[1]] {
			return nil, fmt.Errorf("docs/behaviours.md has %s twice", found[1])
		}
		s.behaviours[found[1]] = true
	}
	return s, err
}

// check returns what is wrong with the citations of a file, and how many there are. Path is relative to the repository.
func (s *specification) check(path, text string) (complaints []string, citations int) {
	complain := func(format string, args ...any) {
		complaints = append(complaints, path+": "+fmt.Sprintf(format, args...))
	}
	for number, line := range strings.Split(text, "\n") {
		page := ""
		for _, found := range cited.FindAllStringSubmatch(line, -1) {
			if found[1] != "" {
				page = found[1]
			}
			if page == "" {
				continue // "and #1" of something else
			}
			citations++
			if anchor := found[2] + found[3]; s.anchors[page] == nil {
				complain("line %d cites docs/spec/%s, which does not exist", number+1, page)
			} else if anchor != "" && !s.anchors[page][anchor] {
				complain("line %d cites docs/spec/%s#%s: the page has no such anchor", number+1, page, anchor)
			}
		}
		for _, name := range ruled.FindAllString(line, -1) {
			if !s.behaviours[name] {
				complain("line %d cites %s, which is not in docs/behaviours.md", number+1, name)
			}
		}
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		_, comment, _ := strings.Cut(line, "//")
		if found := vague.FindString(comment); found != "" && page == "" {
			complain("line %d cites %q: cite docs/spec/PAGE.md#ANCHOR", number+1, found)
		}
		if slices.Contains(numberedIn, filepath.ToSlash(filepath.Dir(path))) {
			for _, name := range numbered.FindAllString(line, -1) {
				if !s.numbers[name] {
					complain("line %d names %s, which has no anchor in docs/spec", number+1, name)
				}
			}
		}
	}
	if strings.HasSuffix(path, ".md") {
		more, n := s.checkLinks(path, text)
		complaints, citations = append(complaints, more...), citations+n
	}
	return complaints, citations
}

// checkLinks looks at a document's links to pages of the specification.
func (s *specification) checkLinks(path, text string) (complaints []string, links int) {
	for _, found := range linked.FindAllStringSubmatch(text, -1) {
		target := filepath.ToSlash(filepath.Join(filepath.Dir(path), found[1]))
		if found[1] == "" {
			target = filepath.ToSlash(path)
		}
		page, ok := strings.CutPrefix(target, "docs/spec/")
		if !ok {
			continue
		}
		links++
		if s.anchors[page] == nil {
			complaints = append(complaints, fmt.Sprintf("%s links to %s, which does not exist", path, target))
		} else if found[2] != "" && !s.anchors[page][found[2]] {
			complaints = append(complaints, fmt.Sprintf("%s links to %s#%s: the page has no such anchor", path, target, found[2]))
		}
	}
	return complaints, links
}

// TestSpecCitations: every citation of the specification, every number of an invariant, table or race, and every number of a
// behaviour leads somewhere.
func TestSpecCitations(t *testing.T) {
	root := filepath.Join("..", "..")
	s, err := readSpecification(root)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int{"I": 15, "T": 5, "R": 21} {
		for n := 1; n <= want; n++ {
			if name := fmt.Sprint(kind, n); !s.numbers[name] {
				t.Errorf("no page of docs/spec has an anchor for %s", name)
			}
		}
	}
	checked := 0
	for path, text := range documents(t, root) {
		if path == "internal/doors/spec_test.go" {
			continue
		}
		complaints, citations := s.check(path, text)
		checked += citations
		for _, complaint := range complaints {
			t.Error(complaint)
		}
	}
	if checked < 150 {
		t.Errorf("%d citations were checked, want at least 150: have they another form?", checked)
	}
	t.Logf("%d citations; pages: %v", checked, slices.Sorted(maps.Keys(s.anchors)))
}

// TestSpecCitationsNoticesMistakes: the check complains of each kind of mistake.
func TestSpecCitationsNoticesMistakes(t *testing.T) {
	s := &specification{
		anchors: map[string]map[string]bool{"page.md": {"t1": true, "t2": true}},
		numbers: map[string]bool{"T1": true}, behaviours: map[string]bool{"B001": true},
	}
	for _, c := range []struct{ path, text, want string }{
		{"a.go", "// docs/spec/page.md#t1 and #t2; B001", ""},
		{"docs/a.md", "[x](spec/page.md#t1)", ""},
		{"docs/spec/page.md", "[x](#t1)", ""},
		{"a.go", "// docs/spec/none.md", "does not exist"},
		{"a.go", "// docs/spec/page.md#t3", "no such anchor"},
		{"a.go", "// docs/spec/page.md#t1 and #t3", "no such anchor"},
		{"a.go", "// As the specification says.", "cite docs/spec/PAGE.md"},
		{"a.go", "// SDK protocol, 2.7.", "cite docs/spec/PAGE.md"},
		{"a.go", "// See B002.", "not in docs/behaviours.md"},
		{"internal/sim/a.go", `"I99 does not hold"`, "no anchor in docs/spec"},
		{"docs/a.md", "[x](spec/page.md#t3)", "no such anchor"},
		{"docs/guide/a.md", "[x](../spec/none.md)", "does not exist"},
		{"docs/spec/page.md", "[x](#t3)", "no such anchor"},
	} {
		complaints, _ := s.check(c.path, c.text)
		got := strings.Join(complaints, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %q: got %q, want %q", c.path, c.text, got, c.want)
		}
	}
}
