package doors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublicSymbolsAreDocumented: every exported symbol of the public libraries has a comment, down to the fields of structs and the
// methods of interfaces. A comment above or behind it counts; for the constants and types of a group, also the group's own. Methods that
// the standard library defines need none, nor do those that an interface shares with a documented type.
func TestPublicSymbolsAreDocumented(t *testing.T) {
	for _, library := range []string{"gameclient", "gameserver", "mustertest"} {
		names, err := filepath.Glob(filepath.Join("..", "..", library, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", library, len(names), err)
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		for _, complaint := range undocumented(files, parsed...) {
			t.Error(complaint)
		}
	}
}

func undocumented(files *token.FileSet, parsed ...*ast.File) (complaints []string) {
	methods := map[string]bool{"Error": true, "Unwrap": true, "String": true} // documented ones
	for _, file := range parsed {
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil && f.Doc.Text() != "" && receiver(f.Recv).IsExported() {
				methods[f.Name.Name] = true
			}
		}
	}
	for _, file := range parsed {
		complaints = append(complaints, undocumentedIn(files, file, methods)...)
	}
	return complaints
}

func undocumentedIn(files *token.FileSet, file *ast.File, methods map[string]bool) (complaints []string) {
	complain := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		for _, comment := range comments {
			if comment.Text() != "" {
				return
			}
		}
		if name.IsExported() {
			complaints = append(complaints, fmt.Sprintf("%s: %s has no comment", files.Position(name.Pos()), name.Name))
		}
	}
	fields := func(list *ast.FieldList, known map[string]bool) {
		for _, field := range list.List {
			for _, name := range field.Names {
				if !known[name.Name] {
					complain(name, field.Doc, field.Comment)
				}
			}
		}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || receiver(d.Recv).IsExported() && !methods[d.Name.Name] {
				complain(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						complain(name, s.Doc, s.Comment, d.Doc)
					}
				case *ast.TypeSpec:
					complain(s.Name, s.Doc, s.Comment, d.Doc)
					if !s.Name.IsExported() {
						continue
					}
					switch of := s.Type.(type) {
					case *ast.StructType:
						fields(of.Fields, nil)
					case *ast.InterfaceType:
						fields(of.Methods, methods)
					}
				}
			}
		}
	}
	return complaints
}

func receiver(list *ast.FieldList) *ast.Ident {
	of := list.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.Ident:
			return t
		default:
			return ast.NewIdent("_")
		}
	}
}

func TestUndocumentedSymbolsAreNoticed(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "x.go", `package x

const A = 1

// B and C are documented as a group.
const (
	B = 1
	C = 2
)

// T is documented, one of its fields is not.
type T struct {
	D int // documented
	E, f int
}

type I interface { G(); L() }

type i struct { M int }

func (t *T) H() {}
func (t *T) Error() string { return "" }

// L is documented.
func (t *T) L() {}
func (t i) J() {}
func (t *T) k() {}
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, complaint := range undocumented(files, file) {
		_, rest, _ := strings.Cut(complaint, ": ")
		name, _, _ := strings.Cut(rest, " ")
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "A E I G H" {
		t.Errorf("complaints about %s, want A E I G H", got)
	}
}
