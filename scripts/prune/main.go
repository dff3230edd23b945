// Command prune prepares a build whose binary is a sixth smaller, because the linker can drop unused methods.
//
// If a program looks up a method by a name that is not a constant, the linker keeps every exported method of every type. In Muster these are 17,000 functions,
// including all operations of the AWS SDK's clients. Two places do such lookups: text/template, for {{.Method}}, and kong, for Run and the hooks of commands.
// Prune writes copies of both in which the names are constants: those in Muster's templates, and those of kong's hooks. It makes the copies from the sources
// that the toolchain and go.sum authenticate, and they behave in the same way for this program. It fails if it does not find the place in a source.
//
//	go run ./scripts/prune bin/prune
//	GOWORK=off go build -overlay bin/prune/overlay.json -modfile bin/prune/go.mod ./cmd/muster   # scripts/release-build.sh
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

const kong = "github.com/alecthomas/kong"

// tags are the tags of scripts/release-build.sh. With this one, gRPC has no pages for traces, which have templates.
const tags = "grpcnotrace"

// strangers are the packages outside of Muster that have their own templates. The program executes none of these: net/rpc has a page for debugging, and Raft's
// codec has a code generator.
var strangers = []string{"html/template", "net/rpc", "github.com/hashicorp/go-msgpack/v2/codec"}

// hooks are the methods that kong calls.
var hooks = []string{"AfterApply", "AfterRun", "BeforeApply", "BeforeReset", "BeforeResolve", "Run"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prune DIR, a directory inside of the repository")
		os.Exit(2)
	}
	if err := prune(filepath.Clean(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "prune:", err)
		os.Exit(1)
	}
}

func prune(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "kong"), 0o755); err != nil {
		return err
	}
	if err := pruneTemplates(dir); err != nil {
		return err
	}
	return pruneKong(dir)
}

// write writes a file unless it already has this text: concurrent builds write the same text.
func write(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// pruneTemplates writes the copy of text/template, and the overlay that replaces the toolchain's.
func pruneTemplates(dir string) error {
	names, err := templateNames()
	if err != nil {
		return err
	}
	root, err := goOutput("env", "GOROOT")
	if err != nil {
		return err
	}
	source := filepath.Join(root, "src", "text", "template", "exec.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	changed, err := replaced(string(text), "ptr.MethodByName(fieldName)", "methodByName(ptr, fieldName)")
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	changed += methodByName(names)
	path, err := filepath.Abs(filepath.Join(dir, "exec.go"))
	if err != nil {
		return err
	}
	if err := write(path, []byte(changed)); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: path}})
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "overlay.json"), overlay)
}

// templateNames returns the names of fields and methods in the program's templates: in the HTML files that are embedded by packages that use templates.
func templateNames() ([]string, error) {
	packages, err := goOutput("list", "-tags", tags, "-deps", "-json=ImportPath,Dir,Module,Imports,GoFiles,EmbedFiles", "./cmd/muster")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(packages)); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		if !slices.Contains(p.Imports, "html/template") && !slices.Contains(p.Imports, "text/template") || slices.Contains(strangers, p.ImportPath) {
			continue
		}
		if err := p.collect(found); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	var names []string
	for name := range found {
		if 'A' <= name[0] && name[0] <= 'Z' { // others are fields of maps
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("no templates were found")
	}
	slices.Sort(names)
	return names, nil
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir              string
	Module                       struct{ Main bool }
	Imports, GoFiles, EmbedFiles []string
}

// collect adds the names in the templates of a package.
func (p listed) collect(found map[string]bool) error {
	if !p.Module.Main {
		return errors.New("it uses templates: does Muster execute them? If not, add it to the list of strangers")
	}
	for _, file := range p.GoFiles {
		if err := withoutTemplates(filepath.Join(p.Dir, file)); err != nil {
			return err
		}
	}
	for _, file := range p.EmbedFiles {
		if filepath.Ext(file) != ".html" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return err
		}
		tree := parse.New(file)
		tree.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(text), "", "", trees); err != nil {
			return err
		}
		for _, t := range trees {
			collect(t.Root, found)
		}
	}
	return nil
}

// withoutTemplates returns an error if a string in Go code is a template, because templateNames searches only HTML files.
func withoutTemplates(file string) error {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING && strings.Contains(s.Value, "{{") {
			err = fmt.Errorf("%s: a template in Go code; want it in an HTML file", set.Position(s.Pos()))
		}
		return true
	})
	return err
}

// collect adds the names of fields and methods in a node.
func collect(n parse.Node, found map[string]bool) {
	add := func(names []string) {
		for _, name := range names {
			found[name] = true
		}
	}
	branch := func(b *parse.BranchNode) {
		collect(b.Pipe, found)
		collect(b.List, found)
		if b.ElseList != nil {
			collect(b.ElseList, found)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, x := range n.Nodes {
			collect(x, found)
		}
	case *parse.ActionNode:
		collect(n.Pipe, found)
	case *parse.PipeNode:
		if n == nil { // {{template "name"}}
			return
		}
		for _, x := range n.Cmds {
			collect(x, found)
		}
	case *parse.CommandNode:
		for _, x := range n.Args {
			collect(x, found)
		}
	case *parse.FieldNode:
		add(n.Ident)
	case *parse.VariableNode:
		add(n.Ident[1:])
	case *parse.ChainNode:
		collect(n.Node, found)
		add(n.Field)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.TemplateNode:
		collect(n.Pipe, found)
	}
}

// pruneKong writes the copy of kong, and a go.mod that replaces the module with it.
func pruneKong(dir string) error {
	if err := withoutProviders("cmd/muster"); err != nil {
		return err
	}
	source, err := goOutput("list", "-m", "-f", "{{.Dir}}", kong)
	if err != nil {
		return err
	}
	if source == "" {
		return fmt.Errorf("%s is not in the module cache: go mod download", kong)
	}
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return err
	}
	to := filepath.Join(dir, "kong")
	stale, err := filepath.Glob(filepath.Join(to, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(source, "go.mod")) {
		name := filepath.Base(file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		stale = slices.DeleteFunc(stale, func(old string) bool { return filepath.Base(old) == name })
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		changed, err := prunedKong(name, string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := write(filepath.Join(to, name), []byte(changed)); err != nil {
			return err
		}
	}
	for _, file := range stale { // of another version
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return modules(dir, to)
}

func prunedKong(name, text string) (_ string, err error) {
	edit := func(what, with string) {
		if err == nil {
			text, err = replaced(text, what, with)
		}
	}
	switch name {
	case "callbacks.go":
		edit("\tmethod := value.MethodByName(name)", "\tmethod := methodByName(value, name)")
		edit("\t\t\tmethod = value.Addr().MethodByName(name)", "\t\t\tmethod = methodByName(value.Addr(), name)")
		edit("\t\treturn value.MethodByName(name)", "\t\treturn methodByName(value, name)")
		edit("\t\treturn value.Addr().MethodByName(name)", "\t\treturn methodByName(value.Addr(), name)")
		edit("method, ok := t.MethodByName(name)", "method, ok := typeMethodByName(t, name)")
		text += methodByName(hooks) + typeMethodByName(hooks)
	case "context.go": // methods whose name begins with Provide, which no command has
		edit("for i := 0; i < p.NumMethod(); i++ {\n\t\t\t\t\tmethodt := t.Method(i)", "for range []int{} {\n\t\t\t\t\tvar methodt reflect.Method")
		edit("method := p.Method(i)\n", "var method reflect.Value\n")
	}
	return text, err
}

// withoutProviders returns an error if a package has methods that only the unchanged kong finds.
func withoutProviders(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "func (") && strings.Contains(line, ") Provide") {
				return fmt.Errorf("%s: %q: the release's kong does not look for providers", path, strings.TrimSpace(line))
			}
		}
		return nil
	})
}

// modules writes go.mod and go.sum.
func modules(dir, to string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if name == "go.mod" {
			text = fmt.Appendf(text, "\nreplace %s => ./%s\n", kong, filepath.ToSlash(to))
		}
		if err := write(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

// methodByName returns the source of a Go function of this name for some names. The linker keeps the methods with these names.
func methodByName(names []string) string {
	b := []byte("\nfunc methodByName(v reflect.Value, name string) reflect.Value {\n\tswitch name {\n")
	for _, name := range names {
		b = fmt.Appendf(b, "\tcase %s:\n\t\treturn v.MethodByName(%[1]s)\n", strconv.Quote(name))
	}
	return string(b) + "\t}\n\treturn reflect.Value{}\n}\n"
}

func typeMethodByName(names []string) string {
	b := []byte("\nfunc typeMethodByName(t reflect.Type, name string) (reflect.Method, bool) {\n\tswitch name {\n")
	for _, name := range names {
		b = fmt.Appendf(b, "\tcase %s:\n\t\treturn t.MethodByName(%[1]s)\n", strconv.Quote(name))
	}
	return string(b) + "\t}\n\treturn reflect.Method{}, false\n}\n"
}

// replaced replaces a text that must occur exactly once.
func replaced(text, what, with string) (string, error) {
	if n := strings.Count(text, what); n != 1 {
		return "", fmt.Errorf("%q occurs %d times, want once", what, n)
	}
	return strings.Replace(text, what, with, 1), nil
}

func goOutput(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
