package archivetest

import (
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/archive"
)

func TestMemory(t *testing.T) {
	disks := map[string]*Memory{}
	Run(t, Engine{Open: func(name string) (archive.Archive, error) {
		if disks[name] == nil {
			disks[name] = NewMemory(1)
		}
		return disks[name].Open()
	}})
}

func TestFaultsOfMemory(t *testing.T) {
	for fault, kept := range map[Fault]bool{NotWritten: false, Written: true} {
		disk := NewMemory(1)
		opened, _ := disk.Open()
		a := &archiveUnderTest{T: t, Archive: opened}
		a.put(playerSession(1))
		disk.FailNext(fault)
		err := a.Put(t.Context(), playerSessions(2, 3))
		if !errors.Is(err, ErrDisk) || !errors.Is(err, archive.ErrFailed) {
			t.Errorf("put with fault %d: got %v, want ErrDisk and ErrFailed", fault, err)
		}
		if _, _, err := a.Get(t.Context(), archive.PlayerSession, "psess-1"); !errors.Is(err, archive.ErrFailed) {
			t.Errorf("get after it: got %v, want ErrFailed", err)
		}
		disk.Crash()
		a.Archive, _ = disk.Open()
		a.wantRecord(playerSession(1))
		if kept {
			a.wantRecord(playerSession(2))
		} else {
			a.wantNone(archive.PlayerSession, "psess-2")
		}
	}
}
