package cell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func given(cmd kernel.Command) *audit.Given {
	return &audit.Given{Command: cmd, By: audit.Origin{Principal: "AKOPS", Door: audit.DoorAPI, Address: "192.0.2.7", Operation: "Change", Reason: "incident 12"}}
}

func (w *world) auditHead() audit.Head {
	v := w.cell.View()
	return v.AuditHead()
}

// log returns the entries in memory.
func (w *world) log() (all []audit.Entry) {
	v := w.cell.View()
	for _, x := range v.AuditWaiting(1, v.AuditHead().No) {
		all = append(all, x.Entry)
	}
	return all
}

// chain checks the entries in memory after a change of them.
func (w *world) chain(change func(all []audit.Entry) []audit.Entry) []audit.Problem {
	v := w.cell.View()
	chain := audit.Chain{Now: w.now}
	for _, e := range change(w.log()) {
		chain.Add(e.No, e.Stored())
	}
	chain.End(v.AuditHead())
	return chain.Problems
}

func auditHall(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	return w
}

// TestAuditLog: a change has one entry with its principal, its reason and the previous values. A refused command, and one that changed nothing, have none.
func TestAuditLog(t *testing.T) {
	w := auditHall(t)
	name := "arena-live"
	w.must(given(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Account: "1", Name: "arena", Terminal: true, Message: "soon"}}))
	w.must(given(&hosting.UpdateAlias{ID: "alias-1", Name: &name}))
	w.refusedFor(domain.NotFound, given(&hosting.DeleteAlias{ID: "alias-2"}))
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-3", Region: "us-east-1", Account: "1", Name: "quiet", Terminal: true, Message: "soon"}})
	w.must(given(&access.CreateAccessKey{Key: access.Key{ID: "AK1", Role: access.Admin, Account: "1", Name: "ops"}}))
	w.must(given(&access.RevokeAccessKey{ID: "AK1", Force: true}))
	w.must(given(&access.RevokeAccessKey{ID: "AK1", Force: true})) // changes nothing
	w.must(given(&hosting.DeleteAlias{ID: "alias-1"}))
	all := w.log()
	if len(all) != 5 {
		t.Fatalf("%d entries, want 5: %+v", len(all), all)
	}
	for i, e := range all {
		if e.No != uint64(i+1) || e.By.Principal != "AKOPS" || e.By.Reason != "incident 12" || e.At == 0 || e.Until != e.At.Add(DefaultConfig().Audit.Kept) {
			t.Errorf("entry %+v", e)
		}
	}
	update := all[1]
	if update.Kind != "alias" || update.ID != "alias-1" || len(update.Changes) != 1 || update.Changes[0] != (audit.Change{Field: "Name", Before: "arena", After: "arena-live"}) {
		t.Errorf("the update is %+v", update)
	}
	if deleted := all[4]; len(deleted.Changes) == 0 || deleted.Changes[0].Before == "" || deleted.Changes[0].After != "" {
		t.Errorf("the deletion is %+v", deleted)
	}
}

// TestAuditLogHasNoSecrets: the log omits values that may be secrets, and its texts are within their bounds.
func TestAuditLogHasNoSecrets(t *testing.T) {
	w := auditHall(t)
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	long := given(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{
		ID: testFleet, Region: "us-east-1", Name: "arena", Description: strings.Repeat("x", 1000), Managed: &fleet.Managed{Build: "build-1"},
		Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Parameters: "--token hunter2", Copies: 2}}},
	}})
	long.By.Agent = strings.Repeat("agent\x1b[31m", 100)
	w.must(long)
	all := w.log()
	if len(all) != 1 {
		t.Fatalf("%d entries", len(all))
	}
	if stored := all[0].Stored(); bytes.Contains(stored, []byte("hunter2")) || bytes.ContainsRune(stored, 0x1b) || len(stored) > 4096 {
		t.Errorf("%d bytes: %q", len(stored), stored)
	}
}

// TestAuditLogShowsTagKeys: a tag's key is no secret, so an entry has it and not its size.
func TestAuditLogShowsTagKeys(t *testing.T) {
	w := auditHall(t)
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	w.must(given(&TagResource{Resource: Resource{Kind: LocationResource, ID: testLocation}, Tags: []fleet.Tag{{Key: "team", Value: "blue"}}}))
	all := w.log()
	if len(all) != 1 || !slices.Contains(all[0].Changes, audit.Change{Field: "Tags[0].Key", After: "team"}) {
		t.Errorf("the entries are %+v", all)
	}
}

// TestAuditChain: altered, missing, exchanged and truncated entries are detected. The loss of the oldest ones is detected until they expire.
func TestAuditChain(t *testing.T) {
	w := auditHall(t)
	for range 4 {
		w.must(&audit.NoteRefusals{Refusals: []audit.Refusal{{By: audit.Origin{Door: audit.DoorAPI, Operation: "sign-in"}, Refused: "missing", Count: 3}}})
		w.now = w.now.Add(time.Hour)
	}
	for name, c := range map[string]struct {
		change func(all []audit.Entry) []audit.Entry
		want   string // part of the first problem
	}{
		"nothing":       {func(all []audit.Entry) []audit.Entry { return all }, ""},
		"altered":       {func(all []audit.Entry) []audit.Entry { all[1].By.Principal = "AKOTHER"; return all }, "entry 2 differs"},
		"last altered":  {func(all []audit.Entry) []audit.Entry { all[3].Count = 9; return all }, "entry 4 differs"},
		"removed":       {func(all []audit.Entry) []audit.Entry { return append(all[:2:2], all[3]) }, "entry 3 is missing"},
		"first removed": {func(all []audit.Entry) []audit.Entry { return all[1:] }, "entry 1 is missing"},
		"last removed":  {func(all []audit.Entry) []audit.Entry { return all[:3] }, "entry 4 is missing"},
		"all removed":   {func(all []audit.Entry) []audit.Entry { return nil }, "entries 1 to 4: each is missing"},
		"renumbered":    {func(all []audit.Entry) []audit.Entry { all[3].No = 5; return all }, "entry 4 is missing"},
	} {
		problems := w.chain(c.change)
		switch {
		case c.want == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case c.want != "" && (len(problems) == 0 || !strings.HasPrefix(problems[0].String(), c.want)):
			t.Errorf("%s: %v, want %q first", name, problems, c.want)
		}
	}
	w.now = w.now.Add(DefaultConfig().Audit.Kept - 150*time.Minute) // 1 and 2 have expired, and 3 does so within the hour
	if problems := w.chain(func(all []audit.Entry) []audit.Entry { return append(all[:1:1], all[3]) }); len(problems) > 0 {
		t.Errorf("the oldest entries have expired behind the first that was read: %v", problems)
	}
	w.now = w.now.Add(150 * time.Minute)
	if problems := w.chain(func(all []audit.Entry) []audit.Entry { return all[2:] }); len(problems) > 0 {
		t.Errorf("the oldest entries have expired: %v", problems)
	}
}

// TestAuditLogWithAWrongClock: an entry of a machine whose clock was ahead leaves memory in its turn, and so do later entries.
func TestAuditLogWithAWrongClock(t *testing.T) {
	w := auditHall(t)
	ahead := given(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	ahead.At = w.now.Add(365 * 24 * time.Hour)
	w.must(ahead)
	w.must(given(&hosting.DeleteLocation{Name: testLocation}))
	w.now = w.now.Add(time.Minute)
	v := w.cell.View()
	if ended := v.Ended(0, 10, w.now); len(ended) != 2 {
		t.Errorf("%d of 2 entries leave memory", len(ended))
	}
}

// TestAuditPositions: the state, and a snapshot of it, has the position of each receiver of the log. Positions only move forward, and the number of receivers is bounded.
func TestAuditPositions(t *testing.T) {
	w := auditHall(t)
	const last = 1
	w.must(given(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"}))
	w.must(&audit.Exported{Receiver: "syslog", No: last})
	w.must(&audit.Exported{Receiver: "syslog", No: last - 1})
	w.must(given(&hosting.CreateLocation{Name: "custom-other", Region: "us-east-1"}))
	for _, refused := range []audit.Exported{{Receiver: "", No: 1}, {Receiver: strings.Repeat("r", audit.ReceiverMax+1), No: 1}, {Receiver: "syslog", No: last + 2}} {
		if err := w.do(&refused); err == nil {
			t.Errorf("%+v was accepted", refused)
		}
	}
	head := w.auditHead()
	if head.No != last+1 || head.Exported("syslog") != last || head.Exported("collector") != 0 {
		t.Errorf("%+v, want position %d", head, last)
	}
	for i := range audit.ExportsMax {
		w.must(&audit.Exported{Receiver: fmt.Sprint("collector-", i), No: 1})
	}
	w.restart()
	head = w.auditHead()
	if len(head.Exports) != audit.ExportsMax || head.Exported("syslog") != 0 || head.Exported("collector-0") != 1 {
		t.Errorf("%+v, want the latest %d", head.Exports, audit.ExportsMax)
	}
}

// TestAuditBelowLevel: while the cluster has nodes of an earlier release, changes are made without entries.
func TestAuditBelowLevel(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.must(given(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"}))
	w.must(&audit.NoteRefusals{Refusals: []audit.Refusal{{Refused: "missing"}}})
	if all := w.log(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
