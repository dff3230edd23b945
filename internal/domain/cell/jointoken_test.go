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

// A join token admits one node, within its hour; a snapshot keeps who was admitted.
func TestJoinTokens(t *testing.T) {
	c := New(DefaultConfig())
	now := domain.Time(1)
	do := func(cmd kernel.Command) error {
		_, err := c.Execute(cmd, &kernel.Env{Now: now, Number: 1})
		return err
	}
	check := func(what string, err error, want domain.Reason) {
		t.Helper()
		refusal, _ := errors.AsType[*domain.Refusal](err)
		switch {
		case want == 0 && err != nil:
			t.Errorf("%s: %v", what, err)
		case want != 0 && (refusal == nil || refusal.Reason != want):
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	issue := &access.IssueJoinToken{ID: "a", Hash: "h"}
	check("issue", do(issue), 0)
	if want := now.Add(access.JoinTokenLife); issue.Expires != want {
		t.Errorf("it expires at %v, want %v", issue.Expires, want)
	}
	check("issue again", do(&access.IssueJoinToken{ID: "a", Hash: "h"}), 0)
	check("issue another one under its id", do(&access.IssueJoinToken{ID: "a", Hash: "g"}), domain.Conflict)
	check("wrong secret", do(&access.UseJoinToken{ID: "a", Hash: "g", Node: "n1"}), domain.NotFound)
	check("no node", do(&access.UseJoinToken{ID: "a", Hash: "h"}), domain.Invalid)
	check("use", do(&access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}), 0)
	check("use again", do(&access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}), 0)
	check("use for another node", do(&access.UseJoinToken{ID: "a", Hash: "h", Node: "n2"}), domain.Conflict)
	for i := range access.JoinTokensMax - 1 {
		check("issue more", do(&access.IssueJoinToken{ID: fmt.Sprint("b", i), Hash: "h"}), 0)
	}
	check("one too many", do(&access.IssueJoinToken{ID: "c", Hash: "h"}), domain.LimitExceeded)

	var stored bytes.Buffer
	if err := c.Freeze().Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	was, is := loaded.View(), c.View()
	if got, want := was.JoinTokens(), is.JoinTokens(); !slices.Equal(got, want) || want[0].Node != "n1" {
		t.Errorf("the snapshot has %+v, want %+v", got, want)
	}

	check("void without a node", do(&access.VoidJoinTokens{}), domain.Invalid)
	check("void for a node that used none", do(&access.VoidJoinTokens{Node: "n2"}), 0)
	check("use again", do(&access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}), 0)
	for range 2 {
		check("void", do(&access.VoidJoinTokens{Node: "n1"}), 0)
		check("use a void one", do(&access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}), domain.NotFound)
	}
	check("use another one", do(&access.UseJoinToken{ID: "b0", Hash: "h", Node: "n1"}), 0)

	now = now.Add(access.JoinTokenLife)
	check("use an expired one", do(&access.UseJoinToken{ID: "b1", Hash: "h", Node: "n2"}), domain.NotFound)
	check("issue once the others have expired", do(&access.IssueJoinToken{ID: "c", Hash: "h"}), 0)
	v := c.View()
	if left := v.JoinTokens(); len(left) != 1 || left[0].ID != "c" {
		t.Errorf("left are %+v, want c", left)
	}
}
