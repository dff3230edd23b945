package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrune checks that both copies look up methods only by constant names, and contain all names of the templates.
func TestPrune(t *testing.T) {
	t.Chdir("../..")
	dir := filepath.Join("bin", "prune-test")
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := prune(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"exec.go", "kong/callbacks.go", "kong/context.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, ".MethodByName(") && !strings.Contains(line, `.MethodByName("`) || strings.Contains(line, "t.Method(i)") {
				t.Errorf("%s: %s", name, strings.TrimSpace(line))
			}
		}
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v: %s", err, out)
	}
}

func TestReplacedOnce(t *testing.T) {
	if got, err := replaced("a b", "b", "c"); err != nil || got != "a c" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"a", "b b"} {
		if got, err := replaced(text, "b", "c"); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNamesOfTemplates(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("page.html", `{{define "one"}}{{.A}}{{range $x := .B.C}}{{$x.D}}{{else}}{{(index .E 0).F}}{{end}}{{end}}{{with .G | call .H}}{{template "one" .I}}{{else with .J}}{{.K.L}}{{end}}`)
	write("page.go", "package page\n\nvar x = [][]int{{1}}\n")
	p := listed{Dir: dir, GoFiles: []string{"page.go"}, EmbedFiles: []string{"page.html", "style.css"}}
	p.Module.Main = true
	found := map[string]bool{}
	if err := p.collect(found); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split("ABCDEFGHIJKL", "") {
		if !found[name] {
			t.Errorf("%s is missing in %v", name, found)
		}
	}
	write("page.go", "package page\n\nconst text = `{{.M}}`\n")
	if err := p.collect(found); err == nil {
		t.Error("a template in Go code is taken")
	}
	p.Module.Main = false
	if err := p.collect(found); err == nil {
		t.Error("a library with templates is taken")
	}
}
