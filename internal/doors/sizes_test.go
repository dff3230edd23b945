package doors

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A package or a type beyond these bounds has more than one purpose (docs/decisions/0058-rooms-of-the-core.md).
const (
	linesMax   = 9000 // of a package, without its tests
	methodsMax = 120  // that one type declares
)

// TestSizes checks the size of every package and every type.
func TestSizes(t *testing.T) {
	for _, p := range list(t) {
		var sources [][]byte
		for _, name := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, source)
		}
		for _, complaint := range measure(t, sources, linesMax, methodsMax) {
			t.Errorf("%s: %s", ours(p.ImportPath), complaint)
		}
	}
}

// measure reports what exceeds the bounds in a package.
func measure(t *testing.T, sources [][]byte, linesMax, methodsMax int) (complaints []string) {
	t.Helper()
	lines, methods := 0, map[string]int{}
	for _, source := range sources {
		lines += bytes.Count(source, []byte{'\n'})
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if method, ok := decl.(*ast.FuncDecl); ok && method.Recv != nil {
				methods[receiver(method.Recv).Name]++
			}
		}
	}
	if lines > linesMax {
		complaints = append(complaints, fmt.Sprintf("%d lines without tests, want at most %d", lines, linesMax))
	}
	for name, n := range methods {
		if n > methodsMax {
			complaints = append(complaints, fmt.Sprintf("type %s has %d methods, want at most %d", name, n, methodsMax))
		}
	}
	slices.Sort(complaints)
	return complaints
}

func TestMeasure(t *testing.T) {
	sources := [][]byte{[]byte("package a\ntype A[T any] struct{}\nfunc (A[T]) B() {}\n"), []byte("package a\nfunc (a *A[T]) C() {}\nfunc D() {}\n")}
	if got := measure(t, sources, 6, 2); got != nil {
		t.Errorf("got %q, want nothing", got)
	}
	want := []string{"6 lines without tests, want at most 5", "type A has 2 methods, want at most 1"}
	if got := measure(t, sources, 5, 1); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
