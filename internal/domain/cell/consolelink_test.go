package cell

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// A link to the console works once, before it expires, and while its key is valid. A snapshot keeps unused links.
func TestConsoleLinks(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	check := w.answers
	check("raise the level", &kernel.RaiseLevel{To: w.cell.KnownLevel()}, 0)
	for _, id := range []string{"ann", "bob", "eve"} {
		check("make a key", &access.CreateAccessKey{Key: access.Key{ID: id, Role: access.ReadOnly}}, 0)
	}
	issue := &access.IssueConsoleLink{ID: "a", Key: "ann"}
	check("issue", issue, 0)
	if want := w.now.Add(access.ConsoleLinkLife); issue.Expires != want {
		t.Errorf("it expires at %v, want %v", issue.Expires, want)
	}
	check("issue again", &access.IssueConsoleLink{ID: "a", Key: "ann"}, 0)
	check("issue for another key", &access.IssueConsoleLink{ID: "a", Key: "bob"}, domain.Conflict)
	check("issue without an id", &access.IssueConsoleLink{Key: "bob"}, domain.Invalid)
	check("issue for no key", &access.IssueConsoleLink{ID: "b", Key: "none"}, domain.NotFound)
	use := &access.UseConsoleLink{ID: "a"}
	check("use", use, 0)
	if use.Key != "ann" {
		t.Errorf("it signs in as %q", use.Key)
	}
	check("use again", &access.UseConsoleLink{ID: "a"}, domain.NotFound)

	check("issue one that waits", &access.IssueConsoleLink{ID: "late", Key: "ann"}, 0)
	check("issue for a key that ends", &access.IssueConsoleLink{ID: "ends", Key: "eve"}, 0)
	check("revoke the key", &access.RevokeAccessKey{ID: "eve"}, 0)
	check("use that of a revoked key", &access.UseConsoleLink{ID: "ends"}, domain.Conflict)
	check("issue for a revoked key", &access.IssueConsoleLink{ID: "more", Key: "eve"}, domain.Conflict)
	w.now = w.now.Add(access.ConsoleLinkLife)
	check("use late", &access.UseConsoleLink{ID: "late"}, domain.NotFound)
	for i := range access.ConsoleLinksOfKey {
		check("issue many", &access.IssueConsoleLink{ID: fmt.Sprint("m", i), Key: "ann"}, 0)
	}
	check("one too many", &access.IssueConsoleLink{ID: "m", Key: "ann"}, domain.LimitExceeded)
	check("another key's", &access.IssueConsoleLink{ID: "m", Key: "bob"}, 0)

	var stored bytes.Buffer
	if err := w.cell.Freeze().Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	was, is := loaded.View(), w.cell.View()
	if got, want := was.ConsoleLinks(), is.ConsoleLinks(); !slices.Equal(got, want) || len(want) != access.ConsoleLinksOfKey+1 {
		t.Errorf("the snapshot has %+v, want %+v", got, want)
	}
}

// There is also a limit for all keys together.
func TestConsoleLinksOfAllKeys(t *testing.T) {
	c := New(DefaultConfig())
	var err error
	do := func(cmd kernel.Command) { _, err = c.Execute(cmd, &kernel.Env{Now: 1, Number: 1}) }
	do(&kernel.RaiseLevel{To: c.KnownLevel()})
	made := 0
	for k := 0; err == nil; k++ {
		key := fmt.Sprint("key", k)
		do(&access.CreateAccessKey{Key: access.Key{ID: key, Role: access.Admin}})
		for i := 0; i < access.ConsoleLinksOfKey && err == nil; i++ {
			if do(&access.IssueConsoleLink{ID: fmt.Sprint(key, "-", i), Key: key}); err == nil {
				made++
			}
		}
	}
	if refusal, ok := errors.AsType[*domain.Refusal](err); !ok || refusal.Reason != domain.LimitExceeded || made != access.ConsoleLinksMax {
		t.Errorf("%d links, then %v; want %d", made, err, access.ConsoleLinksMax)
	}
}
