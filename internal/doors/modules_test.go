package doors

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goCommand runs the go command without the workspace, as users of a module do.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// TestGamesDoNotInheritTheService: a game that requires both libraries gets neither the service's module nor its database.
func TestGamesDoNotInheritTheService(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	game := t.TempDir()
	var sums strings.Builder
	module := "module example.org/game\n\ngo 1.26.0\n"
	for _, library := range []string{"gameclient", "gameserver"} {
		path := "github.com/musterhq/muster/" + library
		module += "\nrequire " + path + " v0.1.0\nreplace " + path + " => " + filepath.Join(root, library) + "\n"
		sum, err := os.ReadFile(filepath.Join(root, library, "go.sum"))
		if err != nil {
			t.Fatal(err)
		}
		sums.Write(sum)
	}
	for name, content := range map[string]string{"go.mod": module, "go.sum": sums.String()} {
		if err := os.WriteFile(filepath.Join(game, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	modules := goCommand(t, game, "list", "-mod=mod", "-m", "all")
	if !strings.Contains(modules, "/amazon-gamelift-servers-go-server-sdk/") || !strings.Contains(modules, "/aws-sdk-go-v2 ") {
		t.Fatalf("the game's modules miss the SDKs of the libraries: %s", modules)
	}
	if unwanted := regexp.MustCompile(`(?m)^(github\.com/cockroachdb/|github\.com/musterhq/muster ).*`).FindAllString(modules, -1); unwanted != nil {
		t.Errorf("a game with gameclient and gameserver inherits %s", strings.Join(unwanted, ", "))
	}
}
