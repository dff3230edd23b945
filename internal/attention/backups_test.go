package attention

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/secretrotation"
)

// Operators are told that there is no backup, or that the last one is too old, and nothing else.
func TestOldBackups(t *testing.T) {
	n := newNight(t)
	most := 48 * time.Hour
	n.config.BackupAgeMax = func() time.Duration { return most }
	said := func() (text string) {
		found, err := New(n.config).Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range found.Items {
			if strings.Contains(x.What, "backup") {
				text += x.What + " " + x.Next
			}
		}
		return text
	}
	n.offset.Store(int64(100 * time.Hour))
	if got := said(); got != "" {
		t.Errorf("before the installation has its access keys: %s", got)
	}
	n.do(&access.TakeOverAccessKeys{Secret: "a"})
	if got := said(); got != "" {
		t.Errorf("of a new installation: %s", got)
	}
	n.offset.Add(int64(49 * time.Hour))
	if got := said(); !strings.Contains(got, "No backup of this installation is known.") || !strings.Contains(got, "muster backup --to") {
		t.Errorf("without a backup: %q", got)
	}
	most = 0
	if got := said(); got != "" {
		t.Errorf("with --backup-age-max 0: %s", got)
	}
	most = 48 * time.Hour
	n.do(&access.NoteBackup{Backup: access.Backup{At: domain.TimeOf(n.engine.Now()), Entry: 1, To: "/backup/"}})
	if got := said(); got != "" {
		t.Errorf("with a new backup: %s", got)
	}
	n.offset.Add(int64(49 * time.Hour))
	if got := said(); !strings.Contains(got, "The last backup is from ") || !strings.Contains(got, "in /backup/. That is more than 2 days ago.") {
		t.Errorf("with an old backup: %q", got)
	}
}

func TestSecretsThatNeedSomething(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	used := func(ago time.Duration) *secretrotation.Use {
		return &secretrotation.Use{At: now.Add(-ago), Purpose: "an access token"}
	}
	for name, c := range map[string]struct {
		g    secretrotation.Document
		want string
	}{
		"the only one":       {secretrotation.Document{Number: 1, State: secretrotation.Signs}, ""},
		"on its way":         {secretrotation.Document{Number: 2, State: secretrotation.Distributed, Created: now.Add(-time.Minute), WaitsFor: []string{"n2"}}, ""},
		"waits for a node":   {secretrotation.Document{Number: 2, State: secretrotation.Distributed, Created: now.Add(-time.Hour), WaitsFor: []string{"n2"}}, "has been waiting since 2026-11-26 11:00:00 UTC for nodes that do not have it: n2"},
		"accepted for long":  {secretrotation.Document{Number: 1, State: secretrotation.Accepted, Until: now.Add(60 * day), LastUse: used(time.Hour)}, ""},
		"ends soon, unused":  {secretrotation.Document{Number: 1, State: secretrotation.Accepted, Until: now.Add(day), LastUse: used(30 * day)}, ""},
		"ends soon, in use":  {secretrotation.Document{Number: 1, State: secretrotation.Accepted, Until: now.Add(day), LastUse: used(time.Hour)}, "are refused from 2026-11-27 12:00:00 UTC on, but are still in use"},
		"ended by its date":  {secretrotation.Document{Number: 1, State: secretrotation.Ended, AccessKeys: 3}, ""},
		"retired, with keys": {secretrotation.Document{Number: 1, State: secretrotation.Ended, Ended: now, EndedBy: &keyring.Actor{}, AccessKeys: 3}, "3 access keys derived from it still work"},
		"retired, no keys":   {secretrotation.Document{Number: 1, State: secretrotation.Ended, Ended: now, EndedBy: &keyring.Actor{}}, ""},
	} {
		got := ""
		for _, x := range secret(&c.g, now) {
			got += x.What
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
