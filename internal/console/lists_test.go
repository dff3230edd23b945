package console

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Pages of hosts have each host once.
func TestHostsComeInPages(t *testing.T) {
	x := newDesk(t)
	commands := []kernel.Command{
		&kernel.RaiseLevel{To: kernel.Level}, &hosting.CreateLocation{Name: "custom-1"},
		&hosts.IssueToken{ID: "t", Hash: "h", Location: "custom-1", Uses: hostsPage + 1, Valid: hosts.ValidMax},
	}
	for i := range hostsPage + 1 {
		key := make([]byte, 32)
		key[0], key[1] = byte(i), byte(i>>8)
		commands = append(commands, &hosts.Join{Token: "t", Hash: "h", Name: fmt.Sprintf("rack-%d", i), Key: key})
	}
	for _, command := range commands {
		if err := x.engine.Do(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	c, seen, pages := x.signedInAs("LOOK"), map[string]int{}, 0
	for next := Prefix + "/hosts"; next != ""; pages++ {
		page := text(t, x.get(next, c))
		for _, m := range regexp.MustCompile(`<th scope="row">(rack-\d+)</th>`).FindAllStringSubmatch(page, -1) {
			seen[m[1]]++
		}
		if m := regexp.MustCompile(`<a href="([^"]+)">Next page</a>`).FindStringSubmatch(page); m != nil {
			next = m[1]
		} else {
			next = ""
		}
	}
	if pages != 2 || len(seen) != hostsPage+1 || seen["rack-200"] != 1 {
		t.Errorf("%d pages with %d hosts", pages, len(seen))
	}
}
