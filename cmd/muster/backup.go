package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/secretkey"
)

type backupCommand struct {
	dataFlag
	reasonFlag
	To string `name:"to" required:"" placeholder:"FILE" help:"File to write. It must not exist, and the service's user must be able to write it."`
}

// Run asks the running service. It never opens the directory itself: while the service is stopped, a copy of the directory is a backup.
func (c *backupCommand) Run(ctx context.Context, stdout io.Writer) error {
	if err := mustExist(c.Data); err != nil {
		return err
	}
	to, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	client, err := c.client()
	var s backup.Summary
	if err == nil {
		client.Reason = c.Reason
		s, err = client.Backup(ctx, to)
	}
	if errors.Is(err, localdoor.ErrNoService) {
		return fmt.Errorf("%w: a backup needs the running service; while it is stopped, copy the directory instead", err)
	}
	if err != nil {
		return err
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s: %d bytes\n", to, s.Bytes)
	describeBackup(text, s)
	_, err = io.WriteString(stdout, text.String())
	return err
}

type restoreCommand struct {
	reasonFlag
	File   string `arg:"" help:"A file of muster backup."`
	Data   string `name:"data" placeholder:"DIR" help:"Data directory to make. It must be empty, or not be there."`
	Verify bool   `name:"verify" help:"Only read the whole file, check it, and show what it has. Nothing is changed."`

	SecretKeyFile string `name:"secret-key-file" placeholder:"FILE" help:"The key that the service had when the backup was made, if it had one. The new directory has it, too."`
}

// Run restores or checks a backup.
func (c *restoreCommand) Run(ctx context.Context, stdout io.Writer) error {
	if c.Data == "" && !c.Verify {
		return errors.New("want --data DIR, the directory to make, or --verify")
	}
	key, err := secretkey.Read(c.SecretKeyFile, c.Data)
	if err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	var s backup.Summary
	var state *cell.Cell
	if c.Verify {
		s, state, err = backup.Verify(f, cell.DefaultConfig(), key)
	} else {
		s, state, err = datadir.Restore(ctx, datadir.Options{Dir: c.Data, Program: "muster restore", Key: key, Log: slog.New(slog.DiscardHandler)}, f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if !c.Verify {
		if err := c.recordLater(c.Data, "restore", "backup", c.File); err != nil {
			return err
		}
	}
	text := &strings.Builder{}
	describeBackup(text, s)
	v := state.View()
	totals := v.Totals()
	fmt.Fprintf(text, "in memory  %d fleets, %d game sessions, %d player sessions\n", totals.Fleets, totals.GameSessions, totals.PlayerSessions)
	if c.Verify {
		fmt.Fprintln(text, "\nThe backup is whole.")
	} else {
		fmt.Fprintf(text, "\n%s is the data directory of a single machine now: start it with `muster serve`, and never beside the service that the backup is of.\n", c.Data)
	}
	_, err = io.WriteString(stdout, text.String())
	return err
}

func describeBackup(out *strings.Builder, s backup.Summary) {
	fmt.Fprintf(out, "state      entry %d of %s, level %d\n", s.Head.Entry, s.Head.State.Format(time.RFC3339), s.Head.Level)
	release := s.Head.Release
	if release == "" {
		release = "a build from source"
	}
	fmt.Fprintf(out, "made       %s by %s, installation %s\n", s.Head.Made.Format(time.RFC3339), release, s.Head.Installation)
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(s.Records)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", s.Records[kind], archiveKinds[kind]))
	}
	if len(kinds) == 0 {
		kinds = []string{"no records"}
	}
	fmt.Fprintf(out, "archive    %s\n", strings.Join(kinds, ", "))
	if s.Damaged > 0 {
		fmt.Fprintf(out, "missing    what %d damaged places of the archive had: see muster archive check\n", s.Damaged)
	}
}
