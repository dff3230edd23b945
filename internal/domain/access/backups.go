package access

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// BackupPlaceMax bounds the location of a backup, in bytes.
const BackupPlaceMax = 512

// levelOfBackups is the level of the first release that records backups.
const levelOfBackups = 2

// Backup describes a backup. The state contains the latest one, so that every node knows its age, even after a restart.
type Backup struct {
	At    domain.Time // when it was started
	Entry uint64      // the journal entry after which the state was saved
	To    string      // its location, as given on the command line
}

// Level implements kernel.Leveled.
func (*Backup) Level() uint { return levelOfBackups }

func (b *Backup) Fields(c *wire.Codec) {
	wire.Int(c, 1, &b.At)
	wire.Int(c, 2, &b.Entry)
	c.String(3, &b.To)
}

// NoteBackup records a stored backup. It changes nothing if the recorded backup has a later state. The clock does not decide, because it may have
// been set back.
type NoteBackup struct{ Backup Backup }

func (cmd *NoteBackup) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	b := cmd.Backup
	b.At = min(b.At, t.Now) // the clock of the machine that made it may be ahead of the cluster's
	switch {
	case b.To == "" || len(b.To) > BackupPlaceMax:
		return domain.Refuse(domain.Invalid, "place of a backup: %d bytes; want 1 to %d", len(b.To), BackupPlaceMax)
	case b.At <= 0 || b.Entry == 0:
		return domain.Refuse(domain.Invalid, "a backup of the state after entry %d, begun at %d ms: want an entry of the journal, and a time", b.Entry, b.At)
	case t.backup != nil && (b.Entry < t.backup.Entry || b.Entry == t.backup.Entry && b.At <= t.backup.At):
		return nil
	}
	t.Emit(&BackupMade{b})
	return nil
}

// LastBackup returns the last backup that was recorded.
func (v *View) LastBackup() (b Backup, ok bool) {
	v.SawAll()
	if v.c.backup == nil {
		return b, false
	}
	return *v.c.backup, true
}

// BackupsKnown reports whether backups are recorded, and since when this installation exists.
func (v *View) BackupsKnown() (since domain.Time, known bool) {
	v.SawAll()
	x := v.c.Records.TakenOver
	if v.c.Level() < levelOfBackups || x == nil {
		return 0, false
	}
	return x.At, true
}
