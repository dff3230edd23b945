package doors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// measuring are the packages that act as clients of the service.
var measuring = []string{"internal/bench", "internal/sim", "internal/demo", "internal/archive/archivetest"}

// TestPrefixes checks that the prefix of an id stands in one place: the Prefix method of its kind.
func TestPrefixes(t *testing.T) {
	root := filepath.Join("..", "..")
	declared, written := map[string]string{}, map[string][]string{} // by prefix; by literal, where it stands
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(root, path)
			of := "" // the literal of the Prefix method that the walk is in
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					of = ""
					if n.Name.Name == "Prefix" && n.Recv != nil && strings.HasPrefix(name, filepath.Join("internal", "domain")) {
						of = n.Name.Name
					}
				case *ast.BasicLit:
					text, _ := strconv.Unquote(n.Value)
					switch {
					case n.Kind != token.STRING:
					case of != "":
						declared[text] = name
					case !slices.ContainsFunc(measuring, func(dir string) bool { return strings.HasPrefix(name, dir+"/") }):
						written[text] = append(written[text], set.Position(n.Pos()).String())
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(declared) < 9 {
		t.Fatalf("prefixes of ids: %v; there should be at least nine", declared)
	}
	for prefix, where := range declared {
		used := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(prefix) + `(%s|$)`)
		for text, places := range written {
			if used.MatchString(text) {
				t.Errorf("%v: %q writes the prefix %s itself; the type of the id does that (%s)", places, text, prefix, where)
			}
		}
	}
}
