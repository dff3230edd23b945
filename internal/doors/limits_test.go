package doors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/settings"
)

// declared is what the repository's Go files declare, as the page of limits names it.
type declared struct {
	names map[string]bool // "package.Name" of constants, variables and fields; the names of tests; the kinds of records
	texts strings.Builder // all string literals, for names of metrics
}

func declarations(t *testing.T, root string) *declared {
	t.Helper()
	d := &declared{names: map[string]bool{}}
	for path, text := range documents(t, root) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		d.add(file, strings.HasSuffix(path, "_test.go"))
	}
	return d
}

func (d *declared) add(file *ast.File, test bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			d.names[x.Name.Name] = d.names[x.Name.Name] || test && (strings.HasPrefix(x.Name.Name, "Test") || strings.HasPrefix(x.Name.Name, "Fuzz"))
		case *ast.ValueSpec:
			d.addNames(file, x.Names, test)
		case *ast.Field:
			d.addNames(file, x.Names, test)
		case *ast.BasicLit:
			if x.Kind == token.STRING && !test {
				d.texts.WriteString(x.Value)
			}
		}
		return true
	})
}

func (d *declared) addNames(file *ast.File, names []*ast.Ident, test bool) {
	for _, name := range names {
		if !test {
			d.names[file.Name.Name+"."+name.Name] = true
		}
	}
}

// has reports whether the code has the object that a name on the page stands for. known is false for a name whose form the page does not use.
func (d *declared) has(name string, flags map[string]bool) (ok, known bool) {
	switch {
	case strings.HasPrefix(name, "--"):
		return flags[strings.TrimPrefix(name, "--")], true
	case regexp.MustCompile(`^Test[A-Z]\w*$`).MatchString(name):
		return d.names[name], true
	case regexp.MustCompile(`^muster_[a-z_]+$`).MatchString(name):
		for _, prefix := range []string{"", "muster_flow_", "muster_matchmaking_"} { // some are put together
			if strings.HasPrefix(name, prefix) && strings.Contains(d.texts.String(), `"`+strings.TrimPrefix(name, prefix)+`"`) {
				return true, true
			}
		}
		return false, true
	case regexp.MustCompile(`^[a-z]+\.[A-Za-z]+$`).MatchString(name):
		return d.names[name], true
	case regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`).MatchString(name): // a kind of records
		return strings.Contains(d.texts.String(), `"`+name+`"`), true
	}
	return false, false
}

// TestLimitsPage: every setting, constant, metric and test that the page of limits names is there.
func TestLimitsPage(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "guide", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for field := range reflect.TypeFor[settings.Settings]().Fields() {
		flags[field.Tag.Get("name")] = true
	}
	code, checked := declarations(t, root), 0
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		ok, known := code.has(found[1], flags)
		if known {
			checked++
		}
		if known && !ok {
			t.Errorf("the page of limits names %s, which is not in the code", found[1])
		}
	}
	if checked < 100 {
		t.Errorf("%d names were checked, want at least 100: has the page another form?", checked)
	}
	for _, gone := range []string{"--limit-nothing", "TestOfNothing", "muster_nothing", "cell.NothingMax", "no_records"} {
		if ok, known := code.has(gone, flags); ok || !known {
			t.Errorf("%s: found %v, known %v; want a name that is noticed as missing", gone, ok, known)
		}
	}
}

// TestThreatModel: every test that the threat model names is there, and every promise names at least one test.
func TestThreatModel(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "security", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, promises, ok := strings.Cut(string(page), "\n## Promises\n")
	if !ok {
		t.Fatal("the threat model has no section of promises")
	}
	code, rows := declarations(t, root), 0
	for row := range strings.Lines(strings.Split(promises, "\n## ")[0]) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| promise") || strings.HasPrefix(row, "| ---") {
			continue
		}
		rows++
		tests := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(row, -1)
		if len(tests) == 0 {
			t.Errorf("a promise names no test: %s", row)
		}
		for _, test := range tests {
			if !code.names[test[1]] {
				t.Errorf("the threat model names %s, which is not in the code", test[1])
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d promises were checked, want at least 20: has the page another form?", rows)
	}
}
