package doors

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A check that never complains looks like one without findings, so it has to show that it can complain.
func TestClosedDoorsAreNoticed(t *testing.T) {
	cases := []struct {
		from, to string
		why      string // part of the reason; "" when the door is open
	}{
		{"internal/domain/fleet", "net/netip", "simulator"},
		{"internal/domain/cell", "context", "simulator"},
		{"internal/domain/fleet", "internal/domain/session", "only the cell"},
		{"internal/domain/session", "internal/domain/cell", "only the cell"},
		{"internal/domain/cell", "internal/engine", "knows nothing around it"},
		{"internal/engine", "github.com/aws/aws-sdk-go-v2/service/gamelift/types", "calendar"},
		{"internal/engine", "internal/gamelift", "none of them"},
		{"internal/journal/pebble", "internal/domain/cell", "store bytes"},
		{"internal/gamelift/codec", "internal/journal", "two truths"},
		{"internal/serverlink", "internal/gamelift", "two truths"},
		{"gameserver", "internal/identity", "public"},
		{"internal/serverlink", "github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server", "out of the service"},
		{"internal/domain/hosting", "internal/domain/matchmaking", "only the cell"},
		{"internal/domain/hosting", "internal/domain/notice", ""},
		{"internal/domain/cell", "internal/domain/fleet", ""},
		{"internal/domain/fleet", "internal/domain", ""},
		{"internal/domain/fleet", "strings", ""},
		{"internal/gamelift", "internal/gamelift/model", ""},
		{"internal/gamelift", "github.com/aws/aws-sdk-go-v2/service/gamelift", ""},
		{"internal/engine", "internal/journal", ""},
	}
	for _, c := range cases {
		p := listedPackage{ImportPath: module + c.from, Imports: []string{c.to}}
		if strings.HasPrefix(c.to, "internal/") {
			p.Imports[0] = module + c.to
		}
		complaints := strings.Join(checkImports([]listedPackage{p}), "\n")
		if (complaints != "") != (c.why != "") || !strings.Contains(complaints, c.why) {
			t.Errorf("%s → %s: want a complaint with %q, got %q", c.from, c.to, c.why, complaints)
		}
	}
	shipped := []listedPackage{{ImportPath: module + "cmd/muster", Deps: []string{"testing", module + "internal/sim", module + "internal/journal/journaltest", "fmt", "net/http/httptest"}}}
	if complaints := checkShipped(shipped); len(complaints) != 3 {
		t.Errorf("want three complaints about test help, got %q", complaints)
	}
}

func TestClocksAreNoticed(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "x.go", `package x
import clock "time"
import "github.com/google/uuid"
func f(c chan int) clock.Duration {
	go f(c)
	select { case <-c: }
	_, _ = clock.Unix(0, 0), uuid.Parse
	_ = uuid.NewString()
	return clock.Since(clock.Now())
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	complaints := huntInFile(files, file)
	if len(complaints) != 5 || !strings.HasPrefix(complaints[0], "x.go:5:") {
		t.Errorf("want five complaints, the first about line 5, got %q", complaints)
	}
}
