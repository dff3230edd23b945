package doors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// secretNames are the names of values with which a client proves something. Hashes of them are not secrets: the number of equal bytes of two hashes reveals nothing about the hashed values.
var secretNames = regexp.MustCompile(`(?i)^(secret|signature|mac|hmac|verifier|challenge|nonce|password|passphrase)$`)

// comparedOtherwise are files that compare a value of such a name where no client waits for the outcome, or the value is no secret.
var comparedOtherwise = []string{
	"internal/datadir/datadir.go", "internal/datadir/key.go", "internal/datadir/problems.go", // a part of the data directory of this name
	"internal/domain/access/losses.go", // the fingerprint of the cell's secret, at the start
	"internal/people/providertest/provider.go",
	"internal/sigv4/sigv4.go", // the secret in the state with the one of which the signing key was derived
}

// TestSecretsAreComparedInConstantTime hunts comparisons that end at the first byte that differs.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil || slices.Contains(comparedOtherwise, filepath.ToSlash(name)) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, complaint := range quickComparisons(files, file) {
				t.Error(complaint)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func quickComparisons(files *token.FileSet, file *ast.File) (complaints []string) {
	check := func(at ast.Node, a, b ast.Expr) {
		if simple(a) || simple(b) {
			return // whether there is one
		}
		for _, x := range []ast.Expr{a, b} {
			if name := lastName(x); secretNames.MatchString(name) {
				complaints = append(complaints, fmt.Sprintf("%s: %s is compared in a time that depends on its bytes: want identity.Equal or crypto/subtle", files.Position(at.Pos()), name))
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BinaryExpr:
			if node.Op == token.EQL || node.Op == token.NEQ {
				check(node, node.X, node.Y)
			}
		case *ast.CallExpr:
			if f, ok := node.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Equal" && len(node.Args) == 2 {
				if of := lastName(f.X); of == "bytes" || of == "slices" {
					check(node, node.Args[0], node.Args[1])
				}
			}
		}
		return true
	})
	return complaints
}

// simple reports whether an expression is a literal, nil, or the zero value of a type.
func simple(x ast.Expr) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.BasicLit, *ast.CompositeLit:
		return true
	case *ast.Ident:
		return x.Name == "nil" || x.Name == "true" || x.Name == "false"
	}
	return false
}

// lastName returns the name of a variable or field, also of a conversion or a slice of it.
func lastName(x ast.Expr) string {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.SliceExpr:
		return lastName(x.X)
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.ArrayType); ok && len(x.Args) == 1 && f.Len == nil || lastName(x.Fun) == "string" && len(x.Args) == 1 {
			return lastName(x.Args[0])
		}
	}
	return ""
}

func TestQuickComparisonsAreNoticed(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "x.go", `package x
func f() {
	_ = a.Secret == b
	_ = bytes.Equal(mac[:16], want)
	_ = string(signature) != x.sent
	_ = secret == "" || nonce != nil || len(secret) == size || code == codeOf(secret)
	_ = identity.Equal(secret, b) && subtle.ConstantTimeCompare(mac, b) == 1
	_ = secretKind == b
}`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := quickComparisons(files, file); len(got) != 3 {
		t.Errorf("%d complaints, want 3: %q", len(got), got)
	}
}
