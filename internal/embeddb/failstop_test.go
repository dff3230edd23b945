package embeddb_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// TestNoFailingWriteEndsTheProcess makes each operation of the disk fail in turn below a database that flushes and
// compacts, with and without a log. Reaching the end is the point: Pebble by itself panics or exits.
func TestNoFailingWriteEndsTheProcess(t *testing.T) {
	for _, log := range []bool{true, false} {
		tune := func(o *pebble.Options) {
			o.MemTableSize = 64 << 10
			o.L0CompactionThreshold = 2
			o.DisableWAL = !log
		}
		work := func(disk *embeddbtest.Disk) error {
			db, err := embeddb.Open(embeddb.Config{Dir: "data", FS: disk}, tune)
			if err != nil {
				return err
			}
			value := make([]byte, 4<<10)
			for n := range 100 {
				err = db.Set(fmt.Appendf(nil, "%d", n%50), value, &pebble.WriteOptions{Sync: log})
				if err == nil && !log && n%10 == 0 {
					err = db.Flush()
				}
				if err = errors.Join(err, db.Err()); err != nil {
					break
				}
			}
			return errors.Join(err, db.Close())
		}
		healthy := embeddbtest.NewDisk()
		if err := work(healthy); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= healthy.Operations(); n += 3 {
			disk := embeddbtest.NewDisk()
			disk.FailAt(n, syscall.EIO, true)
			if err := work(disk); err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("operation %d fails: got %v, want the disk's error", n, err)
			}
			disk.FailAt(0, nil, true)
			if err := work(disk); err != nil {
				t.Errorf("operation %d failed: open and work again: %v", n, err)
			}
		}
	}
}
