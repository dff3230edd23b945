package cell

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// A join token admits one node, within its hour; a snapshot keeps who was admitted.
func TestJoinTokens(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	check := w.answers
	issue := &access.IssueJoinToken{ID: "a", Hash: "h"}
	check("issue", issue, 0)
	if want := w.now.Add(access.JoinTokenLife); issue.Expires != want {
		t.Errorf("it expires at %v, want %v", issue.Expires, want)
	}
	check("issue again", &access.IssueJoinToken{ID: "a", Hash: "h"}, 0)
	check("issue another one under its id", &access.IssueJoinToken{ID: "a", Hash: "g"}, domain.Conflict)
	check("wrong secret", &access.UseJoinToken{ID: "a", Hash: "g", Node: "n1"}, domain.NotFound)
	check("no node", &access.UseJoinToken{ID: "a", Hash: "h"}, domain.Invalid)
	check("use", &access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}, 0)
	check("use again", &access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}, 0)
	check("use for another node", &access.UseJoinToken{ID: "a", Hash: "h", Node: "n2"}, domain.Conflict)
	for i := range access.JoinTokensMax - 1 {
		check("issue more", &access.IssueJoinToken{ID: fmt.Sprint("b", i), Hash: "h"}, 0)
	}
	check("one too many", &access.IssueJoinToken{ID: "c", Hash: "h"}, domain.LimitExceeded)

	var stored bytes.Buffer
	if err := w.cell.Freeze().Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	was, is := loaded.View(), w.cell.View()
	if got, want := was.JoinTokens(), is.JoinTokens(); !slices.Equal(got, want) || want[0].Node != "n1" {
		t.Errorf("the snapshot has %+v, want %+v", got, want)
	}

	check("void without a node", &access.VoidJoinTokens{}, domain.Invalid)
	check("void for a node that used none", &access.VoidJoinTokens{Node: "n2"}, 0)
	check("use again", &access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}, 0)
	for range 2 {
		check("void", &access.VoidJoinTokens{Node: "n1"}, 0)
		check("use a void one", &access.UseJoinToken{ID: "a", Hash: "h", Node: "n1"}, domain.NotFound)
	}
	check("use another one", &access.UseJoinToken{ID: "b0", Hash: "h", Node: "n1"}, 0)

	w.now = w.now.Add(access.JoinTokenLife)
	check("use an expired one", &access.UseJoinToken{ID: "b1", Hash: "h", Node: "n2"}, domain.NotFound)
	check("issue once the others have expired", &access.IssueJoinToken{ID: "c", Hash: "h"}, 0)
	v := w.cell.View()
	if left := v.JoinTokens(); len(left) != 1 || left[0].ID != "c" {
		t.Errorf("left are %+v, want c", left)
	}
}
