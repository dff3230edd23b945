package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	modules "golang.org/x/mod/module"
)

// ours begins the paths of the modules of this repository.
const ours = "github.com/musterhq/muster"

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|copyright|notice|patents)([.-].*)?$`)

// pruned is the directory for scripts/prune's copies of modules, which are under the modules' licences.
const pruned = "./bin/prune/"

// licences returns the licences and notices of Go and of every module that is linked. A module without one is an error: its terms are unknown.
func licences(info *buildinfo.BuildInfo) ([]byte, error) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Muster has parts of these projects. Each is under the terms below its name.\n")
	if err := addLicences(&b, "Go "+runtime.Version(), strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	for _, module := range info.Deps {
		if module.Replace != nil && !strings.HasPrefix(module.Replace.Path, pruned) {
			module = module.Replace
		}
		if module.Path == ours || strings.HasPrefix(module.Path, ours+"/") || strings.HasPrefix(module.Path, ".") {
			continue
		}
		path, err := modules.EscapePath(module.Path)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(strings.TrimSpace(string(cache)), path+"@"+module.Version)
		if err := addLicences(&b, module.Path+"@"+module.Version, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func addLicences(b *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || !licenceName.MatchString(e.Name()) })
	if len(entries) == 0 {
		return fmt.Errorf("%s is linked, and has no file with its licence", name)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n%[1]s\n%[2]s, %[3]s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 100), name, e.Name(), bytes.TrimSpace(text))
	}
	return nil
}
