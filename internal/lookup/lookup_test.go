package lookup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/lookup"
)

// town returns a finder over some objects whose names begin alike.
func town(t *testing.T) (*lookup.Finder, *[]string) {
	t.Helper()
	e := enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig()})
	for _, name := range []string{"arena", "arena-next"} {
		if err := e.Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Do(t.Context(), &hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Name: "Arena", Terminal: true}}); err != nil {
		t.Fatal(err)
	}
	var asked []string
	return &lookup.Finder{Engine: e, Explain: func(_ context.Context, kind, id string) (string, error) {
		asked = append(asked, kind)
		switch {
		case kind == "ticket" && id == "arena":
			return "arena", nil
		case id == "broken":
			return "", errors.New("the disk is gone")
		}
		return "", domain.Refuse(domain.NotFound, "not found")
	}}, &asked
}

func find(t *testing.T, f *lookup.Finder, s lookup.Search) (found []string) {
	t.Helper()
	err := f.Find(t.Context(), s, func(o lookup.Object) bool {
		how := " "
		if o.Exact {
			how = " exact "
		}
		found = append(found, o.Kind+how+o.ID)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFind(t *testing.T) {
	f, asked := town(t)
	for _, c := range []struct {
		search lookup.Search
		want   []string
	}{
		{lookup.Search{Text: " arena "}, []string{"queue exact arena", "alias exact alias-1", "ticket exact arena"}},
		{lookup.Search{Text: "ARENA", Parts: true}, []string{"queue exact arena", "queue arena-next", "alias exact alias-1"}},
		{lookup.Search{Text: "next"}, nil},
		{lookup.Search{Text: "next", Parts: true}, []string{"queue arena-next"}},
		{lookup.Search{Text: "arn:aws:gamelift:eu::alias/alias-1"}, []string{"alias exact alias-1"}},
	} {
		if got := find(t, f, c.search); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.search, got, c.want)
		}
	}
	// Only a caller that requests it pays for a look at each compute, and a caller that has enough results pays for no more.
	*asked = nil
	find(t, f, lookup.Search{Text: "x"})
	if slices.Contains(*asked, "process") {
		t.Errorf("asked for %q", *asked)
	}
	*asked = nil
	if err := f.Find(t.Context(), lookup.Search{Text: "arena", Deep: true}, func(lookup.Object) bool { return false }); err != nil || len(*asked) > 0 {
		t.Errorf("%v, asked for %q behind the first object", err, *asked)
	}
	find(t, f, lookup.Search{Text: "x", Deep: true})
	if !slices.Contains(*asked, "process") {
		t.Errorf("asked for %q", *asked)
	}
	for _, text := range []string{"", " ", strings.Repeat("x", lookup.BytesMax+1)} {
		if err := f.Find(t.Context(), lookup.Search{Text: text}, nil); err == nil {
			t.Errorf("%.10q is found", text)
		}
	}
	if err := f.Find(t.Context(), lookup.Search{Text: "broken"}, func(lookup.Object) bool { return true }); err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a failure is passed as %v", err)
	}
}
