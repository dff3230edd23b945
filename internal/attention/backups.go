package attention

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/plural"
)

// backups says when there is no backup that is as young as expected.
func (f *Finder) backups(v *cell.View, now domain.Time) []Item {
	if f.config.BackupAgeMax == nil {
		return nil
	}
	most := f.config.BackupAgeMax()
	since, known := v.BackupsKnown()
	if most == 0 || !known {
		return nil
	}
	what := "No backup of this installation is known."
	if last, ok := v.LastBackup(); ok {
		since = last.At
		what = fmt.Sprintf("The last backup is from %s UTC, in %s. That is more than %s ago.", last.At.Std().UTC().Format(time.DateTime), last.To, plural.Duration(most))
	}
	if now.Sub(since) <= most {
		return nil
	}
	return []Item{{What: what, Next: "Run muster backup --to DESTINATION, best from a timer. If another program makes the backups, set --backup-age-max to 0."}}
}
