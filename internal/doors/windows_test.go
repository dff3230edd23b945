package doors

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWindows checks the types of the program, of both libraries and of their tests as Windows compiles them, from the source.
// Compiling all that for a second system takes forty times as long; `make windows`, a job of its own, and `make dist` do so.
func TestWindows(t *testing.T) {
	command := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/...", "./gameserver/...", "./gameclient/...")
	command.Dir = "../.."
	command.Env = append(os.Environ(), "GOWORK=", "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0") // the workspace has both libraries
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	checked, ours := map[string]*types.Package{"unsafe": types.Unsafe}, 0
	for decoder := json.NewDecoder(out); ; { // what a package imports comes before it
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
			Module          *struct{ GoVersion string }
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the main package of a test is generated
			continue
		}
		mine := strings.HasPrefix(p.ImportPath, module)
		files, source := token.NewFileSet(), []*ast.File{}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			source = append(source, file)
		}
		config := types.Config{
			Sizes:            types.SizesFor("gc", "amd64"),
			IgnoreFuncBodies: !mine,
			Importer: imports(func(path string) (*types.Package, error) {
				if actual, ok := p.ImportMap[path]; ok {
					path = actual
				}
				return checked[path], nil
			}),
			Error: func(err error) { t.Error(err) },
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			config.GoVersion = "go" + p.Module.GoVersion
		}
		checked[p.ImportPath], _ = config.Check(strings.Split(p.ImportPath, " ")[0], files, source, nil)
		if mine {
			ours++
		}
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if ours < 50 {
		t.Errorf("%d packages of ours, want at least 50", ours)
	}
}

type imports func(path string) (*types.Package, error)

func (i imports) Import(path string) (*types.Package, error) { return i(path) }
