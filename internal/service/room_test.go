package service

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/office"
)

// A full disk, on which a write waits until the store gives up.
type fullDisk struct {
	once    sync.Once
	gaveUp  chan struct{}
	written chan struct{} // closed when the write has returned
}

func (d *fullDisk) Shortage() error           { return nil }
func (d *fullDisk) FreeSpace() (uint64, bool) { return 0, true }
func (d *fullDisk) StopWaiting()              { d.once.Do(func() { close(d.gaveUp) }) }

func (d *fullDisk) Lead() {}
func (d *fullDisk) Rest() { <-d.gaveUp; close(d.written) }

// A part that waits for disk space to record its work does not prevent the service from stopping.
func TestStopOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &fullDisk{gaveUp: make(chan struct{}), written: make(chan struct{})}
		x := &Service{room: watchRoom("/data", 1, slog.New(slog.DiscardHandler), disk), once: office.Parts{disk}}
		stuck := time.AfterFunc(time.Minute, func() {
			t.Error("the service has waited for room for a minute")
			disk.StopWaiting()
		})
		defer stuck.Stop()
		if err := x.close(t.Context()); err != nil {
			t.Error(err)
		}
		<-disk.written
	})
}

// The report of a shortage names the disk, the free space, and the required space.
func TestShortageNamesTheDisk(t *testing.T) {
	r := watchRoom("/data", 5<<20, slog.New(slog.DiscardHandler), &fullDisk{})
	defer r.close()
	want := "no space left on the disk of the data directory /data: 0 MiB are free, and 5 MiB must be free (--disk-reserve)"
	if err := r.Short(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
