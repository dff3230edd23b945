package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/cell"
)

// damagedArchive returns a directory with an archive of which one table is damaged.
func damagedArchive(t *testing.T) string {
	t.Helper()
	dir := furnished(t)
	tables, err := filepath.Glob(filepath.Join(dir, archiveDir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("the archive has the tables %q, %v", tables, err)
	}
	damaged := slices.MaxFunc(tables, func(a, b string) int { return int(size(t, a) - size(t, b)) })
	content, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1 // records come first
	if err := os.WriteFile(damaged, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A repair that is interrupted at any step can be repeated, and the journal has its loss once.
func TestInterruptedRepair(t *testing.T) {
	move := func(t *testing.T, dir, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	killed := errors.New("killed")
	for name, stop := range map[string]func(t *testing.T, dir string){
		"while the new archive is written": func(t *testing.T, dir string) {
			copyTo(t, filepath.Join(dir, archiveDir), filepath.Join(dir, "archive.repairing"))
		},
		"before the damaged one is renamed": func(t *testing.T, dir string) {
			copyTo(t, filepath.Join(dir, archiveDir), filepath.Join(dir, "archive.repaired"))
		},
		"before the loss is recorded": func(t *testing.T, dir string) {
			if _, _, err := RepairArchive(t.Context(), dir, nil, func(string) error { return killed }); !errors.Is(err, killed) {
				t.Fatal(err)
			}
			remove(t, dir, pendingFile)
		},
		"before the audit log has it": func(t *testing.T, dir string) {
			if _, _, err := RepairArchive(t.Context(), dir, nil, func(string) error { return killed }); !errors.Is(err, killed) {
				t.Fatal(err)
			}
		},
		"before the new archive has its name": func(t *testing.T, dir string) {
			if _, _, err := RepairArchive(t.Context(), dir, nil, func(string) error { return nil }); err != nil {
				t.Fatal(err)
			}
			move(t, dir, archiveDir, "archive.repaired")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := damagedArchive(t)
			stop(t, dir)
			if _, err := os.Stat(filepath.Join(dir, archiveDir)); errors.Is(err, os.ErrNotExist) {
				for _, accept := range [][]Part{nil, {Archive}} {
					h, err := open(t, dir, accept...)
					if err == nil {
						h.close()
						t.Fatal("the service starts without the archive")
					}
					if !strings.Contains(err.Error(), "muster archive repair") {
						t.Errorf("the error does not say how to continue: %v", err)
					}
				}
			}
			noted := ""
			report, kept, err := RepairArchive(t.Context(), dir, nil, func(kept string) error { noted = kept; return nil })
			if err != nil || report.Whole() || kept == "" || noted != kept {
				t.Fatalf("the repeated repair: %+v, kept %q, noted %q, %v", report, kept, noted, err)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Error(err)
			}
			if report, kept, err := RepairArchive(t.Context(), dir, nil, func(string) error { return killed }); err != nil || kept != "" || !report.Whole() {
				t.Fatalf("a repair after the repair: %+v, kept %q, %v", report, kept, err)
			}
			h := mustOpen(t, dir)
			defer h.close()
			_ = h.Read(t.Context(), func(v *cell.View) error {
				if all := v.Losses(); len(all) != 1 || !strings.Contains(all[0].What, filepath.Base(kept)) {
					t.Errorf("the journal has the losses %+v, want one that names %s", all, kept)
				}
				return nil
			})
		})
	}
}
