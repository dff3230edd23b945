package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/plural"
)

type archiveCommand struct {
	Check  archiveCheck  `cmd:"" help:"Read the whole archive and report damage. Changes nothing; the service may be running."`
	Repair archiveRepair `cmd:"" help:"Copy the readable records to a new archive and rebuild its keys. The service must be stopped; the damaged archive is kept."`
}

type archiveCheck struct{ dataFlag }

func (c *archiveCheck) Run(ctx context.Context, stdout io.Writer) error {
	if err := mustExist(c.Data); err != nil {
		return err
	}
	report, err := datadir.CheckArchive(ctx, c.Data)
	if err != nil {
		return noArchive(c.Data, err)
	}
	if err := showArchive(stdout, report); err != nil || report.Whole() {
		return err
	}
	return fmt.Errorf("the archive is damaged; `muster archive repair --data %s` keeps the readable records and drops the rest", c.Data)
}

type archiveRepair struct {
	dataFlag
	reasonFlag
}

func (c *archiveRepair) Run(ctx context.Context, stdout io.Writer) error {
	key, err := c.takeOver()
	if err != nil {
		return err
	}
	report, kept, err := datadir.RepairArchive(ctx, c.Data, key, func(kept string) error {
		return c.recordLater(c.Data, "archive repair", "archive", kept)
	})
	if err != nil {
		return noArchive(c.Data, err)
	}
	if err := showArchive(stdout, report); err != nil || kept == "" {
		return err
	}
	_, err = fmt.Fprintf(stdout, "repaired; the damaged archive is kept as %s\n", kept)
	return err
}

// noArchive returns the error, which it explains if a directory has no archive.
func noArchive(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no archive in %s: %w", dir, err)
	}
	return err
}

// archiveKinds has the names of the kinds in messages.
var archiveKinds = map[archive.Kind]string{
	archive.GameSession: "game sessions", archive.PlayerSession: "player sessions", archive.Placement: "placements",
	archive.Ticket: "tickets", archive.PlayerChange: "changes of players' keys", archive.AuditEntry: "entries of the audit log",
}

func showArchive(w io.Writer, report *archivepebble.Report) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s in %s can be read\n", plural.Of(report.Records, "record", "records"), plural.Of(report.Blocks, "block", "blocks"))
	for _, place := range report.Damage {
		fmt.Fprintf(out, "damaged: %s\n", place)
	}
	for _, b := range report.Lost {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(b.Records)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", b.Records[kind], archiveKinds[kind]))
		}
		fmt.Fprintf(out, "lost: block %d", b.Number)
		if len(kinds) > 0 {
			fmt.Fprintf(out, " with %s", strings.Join(kinds, ", "))
		}
		if b.First != 0 {
			fmt.Fprintf(out, ", created from %s to %s", instant(b.First), instant(b.Last))
		}
		if b.LatestEnding != 0 {
			fmt.Fprintf(out, ", ended by %s", instant(b.LatestEnding))
		}
		fmt.Fprintln(out)
	}
	if report.Whole() {
		fmt.Fprintln(out, "nothing is damaged")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func instant(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format(time.RFC3339)
}

// becomeOwner changes this process from root to the user that the service runs as.
func becomeOwner(dir string) error {
	owner, err := ownerOf(dir)
	if err != nil || !isRoot() || owner.isRoot() {
		return err
	}
	if err := owner.become(); err != nil {
		return fmt.Errorf("data directory %s belongs to %s: %w; run this as that user", filepath.Clean(dir), owner, err)
	}
	return nil
}
