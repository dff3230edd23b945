// Package doors enforces which package may import which. Its only content is tests. They read the imports of every package and
// report why one is not allowed.
package doors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/musterhq/muster/"

// door closes some packages to others. Patterns are import paths, ours without the module; "x/..." means x and all
// below it.
type door struct {
	from    []string
	never   []string
	except  []string
	because string
}

var (
	// records are the nouns whose rooms are packages of their own. catalog is not among them: it is a form of storage.
	records = []string{"fleet", "session", "placement", "flow"}
	// rooms are the rooms of the core, each with the rooms whose types it may name. A room reaches another one through an interface
	// that it declares itself; package cell connects them.
	rooms = map[string][]string{
		"hosting": {"notice"}, "gameservers": nil, "notice": nil, "matchmaking": {"notice"}, "playerflow": {"matchmaking"}, "access": nil, "membership": nil, "capacity": nil, "hosts": nil, "audit": nil, "grants": nil, "people": {"access"},
	}
	nouns     = slices.Concat(records, slices.Sorted(maps.Keys(rooms)))
	frontEnds = []string{"gamelift", "serverlink", "agentlink", "playerapi", "sessionapi", "operator", "notify", "metrics", "devclock", "localdoor", "builddoor", "sessionlogs", "sso", "console"}
)

func doors() []door {
	list := []door{
		{
			from:    []string{"internal/domain/..."},
			never:   []string{"net/...", "os/...", "log/...", "context", "math/rand/...", "crypto/rand", "syscall", "runtime/..."},
			because: "the domain could not run in the simulator: time, identifiers and chance come in with the command",
		},
		{
			from:    []string{"internal/domain/..."},
			never:   []string{"internal/...", "cmd/...", "gameclient/...", "gameserver/...", "mustertest/..."},
			except:  []string{"internal/domain/..."},
			because: "the domain is the middle of the house and knows nothing around it",
		},
		{
			from:    []string{"internal/domain/...", "internal/engine/..."},
			never:   []string{"github.com/aws/..."},
			because: "the wire changes on someone else's calendar",
		},
		{
			from:    []string{"internal/journal/...", "internal/archive/..."},
			never:   []string{"internal/domain/...", "internal/engine/..."},
			because: "they store bytes and must not care what a game session is",
		},
		{
			from:    []string{"internal/cluster/trust", "internal/cluster/link", "internal/cluster/requests"},
			never:   []string{"internal/domain/...", "internal/engine/..."},
			because: "they know nodes and bytes; what nodes tell each other is decided above them",
		},
		{
			from:    []string{"internal/engine/..."},
			never:   below("internal/", frontEnds),
			because: "front ends know the engine; the engine knows none of them",
		},
		{
			from:    []string{"gameclient/...", "gameserver/..."},
			never:   []string{"internal/...", "cmd/..."},
			because: "studios link the public libraries into their games; what they need must be public",
		},
		{
			from:    []string{"cmd/muster/...", "internal/..."},
			never:   []string{"github.com/amazon-gamelift/..."},
			because: "the game servers' SDK and its dependencies stay out of the service",
		},
	}
	for _, noun := range append(records, "kernel") {
		list = append(list, door{
			from:    []string{"internal/domain/" + noun + "/..."},
			never:   below("internal/domain/", append(others(nouns, noun), "cell")),
			because: "only the cell sees all nouns: this one is shared by rooms that do not know each other",
		})
	}
	for room, known := range rooms {
		never := slices.DeleteFunc(slices.Sorted(maps.Keys(rooms)), func(x string) bool { return x == room || slices.Contains(known, x) })
		list = append(list, door{
			from:    []string{"internal/domain/" + room + "/..."},
			never:   below("internal/domain/", append(never, "cell")),
			because: "a newcomer to one room never has to open another; only the cell sees all of them",
		})
	}
	for _, frontEnd := range frontEnds {
		list = append(list, door{
			from:    []string{"internal/" + frontEnd + "/..."},
			never:   append(below("internal/", others(frontEnds, frontEnd)), "internal/journal/...", "internal/archive/..."),
			because: "a front end translates and authorises; with this it would begin to decide, and there would be two truths",
		})
	}
	return list
}

// listedPackage is the go command's description of a package, without its test files.
type listedPackage struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

func TestDoors(t *testing.T) {
	packages := list(t)
	for _, complaint := range checkImports(packages) {
		t.Error(complaint)
	}
	for _, complaint := range checkShipped(packages) {
		t.Error(complaint)
	}
	for _, p := range packages {
		if matches(p.ImportPath, "internal/domain/...") {
			for _, complaint := range huntClocks(t, p) {
				t.Error(complaint)
			}
		}
	}
}

func checkImports(packages []listedPackage) (complaints []string) {
	for _, door := range doors() {
		for _, p := range packages {
			if !matchesAny(p.ImportPath, door.from) {
				continue
			}
			for _, imported := range p.Imports {
				if matchesAny(imported, door.never) && !matchesAny(imported, door.except) {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", ours(p.ImportPath), ours(imported), door.because))
				}
			}
		}
	}
	return complaints
}

// checkShipped checks all packages that the binary and the public libraries are linked from.
func checkShipped(packages []listedPackage) (complaints []string) {
	for _, p := range packages {
		if !matchesAny(p.ImportPath, []string{"cmd/...", "gameclient/...", "gameserver/..."}) {
			continue
		}
		// The game servers' SDK is linked with the package testing itself; that is not ours to mend.
		linkedWithSDK := slices.ContainsFunc(p.Deps, func(dep string) bool { return matches(dep, "github.com/amazon-gamelift/...") })
		for _, dep := range p.Deps {
			if testHelp(dep) || matches(dep, "testing") && !linkedWithSDK {
				complaints = append(complaints, fmt.Sprintf("%s is linked with %s: test help must not ship", ours(p.ImportPath), ours(dep)))
			}
		}
	}
	return complaints
}

// testHelp reports whether a package of ours exists for tests only: the simulator, and all packages whose name ends with "test".
func testHelp(path string) bool {
	return matches(path, "internal/sim/...") || strings.HasPrefix(path, module) && strings.HasSuffix(path, "test")
}

func list(t *testing.T) []listedPackage {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,Deps,GoFiles", module+"...")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var packages []listedPackage
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("output of go list: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no packages")
	}
	return packages
}

func matchesAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(path, pattern) })
}

func matches(path, pattern string) bool {
	path = ours(path)
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == folder || strings.HasPrefix(path, folder+"/")
	}
	return path == pattern
}

func ours(path string) string { return strings.TrimPrefix(path, module) }

func below(folder string, names []string) (patterns []string) {
	for _, name := range names {
		patterns = append(patterns, folder+name+"/...")
	}
	return patterns
}

func others(names []string, but string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == but })
}
