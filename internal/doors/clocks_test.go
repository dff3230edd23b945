package doors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// clocks are the functions of package time that read a clock or wait for one.
var clocks = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTicker": true, "NewTimer": true,
}

// huntClocks looks for uses that imports do not show: the clock, random UUIDs, goroutines, and select with its random choice.
func huntClocks(t *testing.T, p listedPackage) (complaints []string) {
	t.Helper()
	files := token.NewFileSet()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		complaints = append(complaints, huntInFile(files, file)...)
	}
	return complaints
}

func huntInFile(files *token.FileSet, file *ast.File) (complaints []string) {
	complain := func(node ast.Node, what string) {
		complaints = append(complaints, fmt.Sprintf("%s: %s: the same journal must give the same state on every machine and in the simulator",
			files.Position(node.Pos()), what))
	}
	timeName, uuidName := nameOf(file, "time"), nameOf(file, "github.com/google/uuid")
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			complain(node, "the domain starts a goroutine")
		case *ast.SelectStmt:
			complain(node, "the domain selects between channels")
		case *ast.SelectorExpr:
			of, ok := node.X.(*ast.Ident)
			if ok && (of.Name == timeName && clocks[node.Sel.Name] || of.Name == uuidName && strings.HasPrefix(node.Sel.Name, "New")) {
				complain(node, "the domain uses "+of.Name+"."+node.Sel.Name)
			}
		}
		return true
	})
	return complaints
}

// nameOf returns the file's name for the package at an import path, or "" if the file does not import it.
func nameOf(file *ast.File, imported string) string {
	for _, spec := range file.Imports {
		switch {
		case spec.Path.Value != strconv.Quote(imported):
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return path.Base(imported)
		}
	}
	return ""
}
