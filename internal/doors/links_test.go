package doors

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pointing finds the links of a Markdown page that lead into the repository.
var pointing = regexp.MustCompile(`\]\(([^)\s:#]*)(?:#([^)\s]+))?\)`)

// targets returns the places of a page that a link may name: its headings, as the hosting site spells them, and its anchors.
func targets(page string) (names []string) {
	for _, found := range regexp.MustCompile(`<a id="([\w-]+)">`).FindAllStringSubmatch(page, -1) {
		names = append(names, found[1])
	}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		heading := strings.TrimLeft(line, "#")
		if fenced || heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		slug := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		names = append(names, strings.ReplaceAll(slug, " ", "-"))
	}
	return names
}

// brokenLinks returns complaints about links of a page that lead nowhere. read returns a page or file by its path in the repository.
func brokenLinks(path, page string, read func(path string) (text string, ok bool)) (complaints []string, links int) {
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "    ") {
			continue
		}
		for _, found := range pointing.FindAllStringSubmatch(line, -1) {
			links++
			target := filepath.ToSlash(filepath.Join(filepath.Dir(path), found[1]))
			text := page
			if found[1] != "" {
				var ok bool
				if text, ok = read(target); !ok {
					complaints = append(complaints, fmt.Sprintf("%s links to %s, which does not exist", path, target))
					continue
				}
			}
			if found[2] != "" && strings.HasSuffix(target+path, ".md") && !slices.Contains(targets(text), found[2]) {
				complaints = append(complaints, fmt.Sprintf("%s links to %s#%s: there is no such heading or anchor", path, found[1], found[2]))
			}
		}
	}
	return complaints, links
}

// documents yields the files of the repository that people read, by path: pages, Go files, schemas, and the scripts of the core.
func documents(t *testing.T, root string) iter.Seq2[string, string] {
	return func(yield func(path, text string) bool) {
		core := filepath.Join(root, "internal", "domain") + string(filepath.Separator)
		script := func(path string) bool { // of the core
			return strings.HasPrefix(path, core) && strings.Contains(path, "testdata")
		}
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			name := entry.Name()
			switch {
			case err != nil:
				return err
			case entry.IsDir() && strings.HasPrefix(name, ".") && path != root && name != ".github",
				entry.IsDir() && slices.Contains([]string{"testdata", "node_modules", "bin", "dist"}, name) && !script(path):
				return filepath.SkipDir
			case entry.IsDir() || !slices.Contains([]string{".go", ".md", ".proto", ""}, filepath.Ext(name)),
				filepath.Ext(name) == "" && !script(path):
				return nil
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && !yield(filepath.ToSlash(relative), string(text)) {
				return filepath.SkipAll
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestLinks: every link from one page of the repository to another leads somewhere.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(path string) (string, bool) {
		full := filepath.Join(root, path)
		if info, err := os.Stat(full); err != nil || info.IsDir() {
			return "", err == nil
		}
		text, err := os.ReadFile(full)
		return string(text), err == nil
	}
	checked := 0
	for path, page := range documents(t, root) {
		if filepath.Ext(path) != ".md" || filepath.Base(path) == "pull_request_template.md" { // its links are those of the site
			continue
		}
		complaints, links := brokenLinks(path, page, read)
		checked += links
		for _, complaint := range complaints {
			t.Error(complaint)
		}
	}
	if checked < 300 {
		t.Errorf("%d links were checked, want at least 300: have they another form?", checked)
	}
}

func TestBrokenLinksAreNoticed(t *testing.T) {
	pages := map[string]string{"docs/a.md": "# One thing: two\n<a id=\"x\"></a>\n```\n# no heading\n```\n"}
	read := func(path string) (string, bool) { text, ok := pages[path]; return text, ok }
	for link, want := range map[string]string{
		"docs/a.md": "", "docs/a.md#one-thing-two": "", "docs/a.md#x": "",
		"docs/b.md": "does not exist", "docs/a.md#no-heading": "no such heading", "docs/a.md#y": "no such heading",
	} {
		complaints, _ := brokenLinks("README.md", "["+"x]("+link+")", read)
		if got := strings.Join(complaints, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("a link to %s: got %q, want %q", link, got, want)
		}
	}
}
