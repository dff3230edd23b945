package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
)

// TestAuditLog: entries are read from memory and from the archive, once each. They outlive all other archived records, and the log is whole
// before and after the oldest ones have expired.
func TestAuditLog(t *testing.T) {
	config := cell.DefaultConfig()
	config.Audit.Kept = 60 * 24 * time.Hour
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, engine.Config{Cell: config, Clock: clock})
	name := 0
	change := func(n int) {
		for range n {
			name++
			ctx := audit.With(t.Context(), audit.Origin{Principal: "AKOPS", Door: audit.DoorConsole, Operation: "UpdateAlias", Reason: "incident"})
			text := time.Duration(name).String()
			if err := h.Do(ctx, &hosting.UpdateAlias{ID: "alias-1", Name: &text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Account: "1", Name: "arena", Terminal: true, Message: "soon"}})
	check := func(first, entries uint64) {
		t.Helper()
		v, err := audit.Verify(t.Context(), h, nil)
		if err != nil || len(v.Problems) > 0 || v.First != first || v.Entries != entries {
			t.Errorf("%+v, %v; want %d entries from %d on", v, err, entries, first)
		}
		seen := uint64(0)
		for below, last := uint64(0), v.Last+1; ; {
			page, err := audit.Read(t.Context(), h, audit.Filter{Who: "akops", What: "alias-1"}, below, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entries {
				if seen++; e.No != last-1 || e.Reason != "incident" || len(e.Changes) != 1 {
					t.Fatalf("entry %+v behind %d", e, last)
				}
				last = e.No
			}
			if below = page.Next; below == 0 {
				break
			}
		}
		if seen != entries {
			t.Errorf("the pages have %d entries, want %d", seen, entries)
		}
	}
	advance := func(days int) {
		if err := h.Advance(t.Context(), time.Duration(days)*24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	check(0, 0)
	change(400)
	check(1, 400)
	advance(40)
	change(200)
	check(1, 600)
	advance(30)
	change(1)
	check(401, 201)
	for no, want := range map[uint64]string{1: "entry 1 has expired", 401: "", 602: ""} {
		v, err := audit.Verify(t.Context(), h, &audit.Anchor{No: no, Hash: []byte("another")})
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("anchor %d: %+v, %v; want %q", no, v, err, want)
		case want == "" && (err != nil || len(v.Problems) != 1):
			t.Errorf("anchor %d: %+v, %v; want a problem", no, v, err)
		}
	}
}

// TestAuditFilter: each filter selects by itself.
func TestAuditFilter(t *testing.T) {
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, engine.Config{Cell: cell.DefaultConfig(), Clock: clock})
	for i, door := range []string{audit.DoorAPI, audit.DoorConsole} {
		ctx := audit.With(t.Context(), audit.Origin{Principal: []string{"AKANN", "AKBOB"}[i], Door: door, Operation: "CreateLocation"})
		if err := h.Do(ctx, &hosting.CreateLocation{Name: []string{"custom-a", "custom-b"}[i], Region: "us-east-1"}); err != nil {
			t.Fatal(err)
		}
		if err := h.Advance(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	log := audit.NewLog(h, t.TempDir(), h.Now, nil)
	by := audit.Origin{Principal: "AKCAROL", Door: audit.DoorAPI, Operation: "DeleteFleet"}
	for range 1000 {
		log.RefusedAs(by, "AccessDenied")
		log.SignInFailed(audit.DoorAPI, "192.0.2.9", "", "missing")
	}
	log.Close()
	for name, c := range map[string]struct {
		filter audit.Filter
		want   []uint64
	}{
		"all":     {audit.Filter{}, []uint64{4, 3, 2, 1}},
		"who":     {audit.Filter{Who: "bob"}, []uint64{2}},
		"address": {audit.Filter{Who: "192.0.2.9"}, []uint64{4}},
		"what":    {audit.Filter{What: "custom-a"}, []uint64{1}},
		"door":    {audit.Filter{Door: audit.DoorConsole}, []uint64{2}},
		"refused": {audit.Filter{Refused: true}, []uint64{4, 3}},
		"since":   {audit.Filter{Since: time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)}, []uint64{4, 3, 2}},
		"until":   {audit.Filter{Until: time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)}, []uint64{1}},
	} {
		page, err := audit.Read(t.Context(), h, c.filter, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, e := range page.Entries {
			got = append(got, e.No)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: entries %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: entries %v, want %v", name, got, c.want)
			}
		}
		if name == "refused" && page.Entries[1].Count != 1000 {
			t.Errorf("1000 attempts are %+v", page.Entries[1])
		}
	}
}

// TestAuditLogAtAnyNode: every node accepts recorded changes, fills in their results, and has the whole log at once.
func TestAuditLogAtAnyNode(t *testing.T) {
	c, w := newWired(t, 3, engine.Config{})
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(9) {
		at, next := c.members[i%3], c.members[(i+1)%3]
		ctx := audit.With(t.Context(), audit.Origin{Principal: fmt.Sprint("AK", i), Door: audit.DoorAPI, Operation: "CreateLocation"})
		cmd := &hosting.CreateLocation{Name: fmt.Sprint("custom-", i), Region: "us-east-1"}
		if err := at.Do(ctx, cmd); err != nil {
			t.Fatal(err)
		}
		if cmd.Location.Name != cmd.Name {
			t.Errorf("node %d answers %+v", i%3, cmd.Location)
		}
		v, err := audit.Verify(t.Context(), next, nil)
		if err != nil || len(v.Problems) > 0 || v.Entries != i+1 {
			t.Fatalf("node %d: %+v, %v; want %d entries", (i+1)%3, v, err, i+1)
		}
		page, err := audit.Read(t.Context(), next, audit.Filter{}, 0, 1)
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Who != fmt.Sprint("AK", i) || page.Entries[0].ID != cmd.Name {
			t.Errorf("node %d: %+v, %v", (i+1)%3, page, err)
		}
	}
	c.agree()
}

// TestAuditLogBesideAnEarlierRelease: changes by administrators are made without entries while the leader does not know the audit log.
func TestAuditLogBesideAnEarlierRelease(t *testing.T) {
	c, w := newWired(t, 2, engine.Config{Levels: &members{lowest: domainaudit.Level - 1}})
	c.group.lock.Lock()
	c.group.elect()
	old := &office{disk: &disk{group: c.group}, term: c.group.term, ended: c.group.ended}
	c.group.lock.Unlock()
	begun, err := engine.OpenOffline(t.Context(), engine.Config{Journal: old, Cell: cell.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := begun.Do(t.Context(), &hosting.CreateLocation{Name: "custom-old", Region: "us-east-1"}); err != nil {
		t.Fatal(err)
	}
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	w.later = "audit.Given"
	ctx := audit.With(t.Context(), audit.Origin{Principal: "AKOPS", Door: audit.DoorAPI, Operation: "CreateLocation"})
	for i, m := range c.members {
		if err := m.Do(ctx, &hosting.CreateLocation{Name: fmt.Sprint("custom-", i), Region: "us-east-1"}); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
	if v, err := audit.Verify(t.Context(), c.members[1], nil); err != nil || v.Last != 0 {
		t.Errorf("%+v, %v; want no entry", v, err)
	}
}

// BenchmarkDoWithoutOrigin measures the cost of the audit log for a command that it does not record.
func BenchmarkDoWithoutOrigin(b *testing.B) {
	ctx := context.WithValue(context.WithValue(b.Context(), http.ServerContextKey, 1), http.LocalAddrContextKey, 2) // as in a request
	for b.Loop() {
		if _, ok := audit.From(ctx); ok {
			b.Fatal("it has an origin")
		}
	}
}
