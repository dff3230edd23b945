package doors

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/audit"
)

// TestDoorsOfTheAuditLog: each door where sign-ins fail can be asked for, since entries have its name.
func TestDoorsOfTheAuditLog(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, door := range regexp.MustCompile(`ignins\.Door\("([^"]+)"\)`).FindAllStringSubmatch(string(text), -1) {
			if found++; !slices.Contains(audit.Doors, door[1]) {
				t.Errorf("%s: audit.Doors lacks %q", name, door[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d doors were found", found)
	}
}
