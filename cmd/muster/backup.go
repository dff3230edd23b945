package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/backup/repository"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/s3"
	"github.com/musterhq/muster/internal/secretkey"
	"github.com/musterhq/muster/internal/settings"
)

type backupCommand struct {
	Make backupMake `cmd:"" default:"withargs" help:"Back up everything in the running service. Works at any node of a cluster."`
	List backupList `cmd:"" help:"List the backups of a directory or a bucket, and the journal entries that can be restored."`
}

type backupMake struct {
	dataFlag
	reasonFlag
	To   string         `name:"to" required:"" placeholder:"DESTINATION" help:"A new file; or a directory or s3://BUCKET/PREFIX that holds many incremental backups; or - for standard output. A directory exists already, or its name ends with a slash."`
	Full bool           `name:"full" help:"Store everything again instead of building on an earlier backup."`
	Keep int            `name:"keep" placeholder:"N" help:"Then remove all backups in the directory or bucket except the latest N and those of the last ten minutes; 0: keep all."`
	Rate settings.Bytes `name:"rate" placeholder:"SIZE" default:"64MiB" help:"Bytes per second that the service reads for the backup, so that the disk stays fast for players; 0: no limit."`
}

// Run asks the running service and never opens the directory itself: while the service is stopped, a copy of the directory is a backup.
func (c *backupMake) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if err := mustExist(c.Data); err != nil {
		return err
	}
	if c.Keep < 0 {
		return fmt.Errorf("--keep: %d; want 0 or more", c.Keep)
	}
	err := c.make(ctx, stdout, env)
	if errors.Is(err, localdoor.ErrNoService) {
		return fmt.Errorf("%w: a backup needs the running service; while it is stopped, copy the directory instead", err)
	}
	return err
}

func (c *backupMake) make(ctx context.Context, stdout io.Writer, env environment) error {
	if c.To == pipe {
		if c.Full || c.Keep > 0 {
			return errors.New("--full and --keep need a directory or bucket with backups; standard output is neither")
		}
		return c.toPipe(ctx, stdout, os.Stderr)
	}
	place, err := backupsAt(ctx, env, c.To)
	if err != nil {
		return err
	}
	if place != nil {
		return c.add(ctx, place, stdout)
	}
	if c.Full || c.Keep > 0 {
		return fmt.Errorf("--full and --keep need a directory or bucket with backups, but %s is a file; for a new directory write %s/", c.To, c.To)
	}
	return c.toFile(ctx, stdout)
}

// backupsAt returns the repository of a place, or nil if the place is a file.
func backupsAt(ctx context.Context, env environment, place string) (*repository.Repository, error) {
	if strings.HasPrefix(place, "s3://") {
		at, err := s3.ParseAt(place, cmp.Or(env["AWS_ENDPOINT_URL_S3"], env["AWS_ENDPOINT_URL"]))
		if err != nil {
			return nil, err
		}
		client, err := s3.Open(ctx, at)
		if err != nil {
			return nil, err
		}
		if err := client.FindCredentials(ctx); err != nil {
			return nil, err
		}
		return repository.New(&repository.Bucket{Client: client, Tell: func(err error, again time.Duration) {
			fmt.Fprintf(os.Stderr, "muster: %v; trying again in %s\n", err, again)
		}}), nil
	}
	path, err := filepath.Abs(place)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() || strings.HasSuffix(place, "/") || strings.HasSuffix(place, string(filepath.Separator)) {
		return repository.New(repository.NewDir(path)), nil
	}
	return nil, nil
}

// toFile writes a backup to a file. This process writes it, not the service, so the user's paths and permissions apply, even if the service sees other
// directories or may not write anywhere.
func (c *backupMake) toFile(ctx context.Context, stdout io.Writer) error {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	return c.alone(ctx, to, stdout, func(write func(io.Writer) (backup.Summary, error)) (backup.Summary, error) {
		return backup.WriteFile(ctx, to, backup.LeaveFree, write)
	})
}

// toPipe writes a backup to stdout, and says what it has on stderr. The service counts it as made once stdout has taken all of it; whether the other end keeps it, only restore --verify tells.
func (c *backupMake) toPipe(ctx context.Context, stdout, stderr io.Writer) error {
	if err := refuseTerminal(stdout); err != nil {
		return err
	}
	return c.alone(ctx, "standard output", stderr, func(write func(io.Writer) (backup.Summary, error)) (backup.Summary, error) { return write(stdout) })
}

// alone makes a backup that no later backup builds on. put chooses the destination; tell receives a description of the backup.
func (c *backupMake) alone(ctx context.Context, to string, tell io.Writer, put func(write func(io.Writer) (backup.Summary, error)) (backup.Summary, error)) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	client.Reason = c.Reason
	s, err := put(func(file io.Writer) (s backup.Summary, err error) {
		stream, err := client.Stream(ctx, localdoor.StreamRequest{To: to, Rate: int64(c.Rate), Alone: true})
		if err != nil {
			return s, err
		}
		defer stream.Close()
		return backup.Copy(file, stream, key)
	})
	if err != nil {
		return err
	}
	stored(ctx, client, to, s.Head)
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s: %d bytes\n", to, s.Bytes)
	describeBackup(text, s)
	_, err = io.WriteString(tell, text.String())
	return err
}

// add adds a backup to a repository. This process stores it, and the service only sends it.
func (c *backupMake) add(ctx context.Context, to *repository.Repository, stdout io.Writer) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	client.Reason = c.Reason
	m, err := to.Take(ctx, repository.Options{Key: key, Full: c.Full, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Stream: func(ctx context.Context, since *backup.Since) (io.ReadCloser, error) {
		return client.Stream(ctx, localdoor.StreamRequest{To: to.String(), Since: since, Rate: int64(c.Rate)})
	}})
	if err != nil {
		return err
	}
	stored(ctx, client, to.String(), m.Head)
	text, s := &strings.Builder{}, m.Summary()
	fmt.Fprintf(text, "%s: backup %s, %d bytes, of which %d are new\n", to, m.Name(), s.Bytes, m.Made)
	describeBackup(text, s)
	if len(m.Entries) > 0 {
		fmt.Fprintf(text, "journal    entries %d to %d, each of which you can restore\n", m.Head.From, m.Head.Entry)
	} else if m.On != "" {
		fmt.Fprintln(text, "journal    nothing new, or the service no longer has the entries since the last backup: make backups more often to restore each of them")
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil || c.Keep == 0 {
		return err
	}
	removed, err := to.Keep(ctx, c.Keep)
	if err != nil {
		return fmt.Errorf("the backup is made, but older ones were not removed: %w", err)
	}
	if removed > 0 {
		_, err = fmt.Fprintf(stdout, "removed    %s\n", plural.Of(removed, "older backup", "older backups"))
	}
	return err
}

// stored tells the service that a backup is stored.
func stored(ctx context.Context, client *localdoor.Client, to string, h backup.Head) {
	if err := client.Stored(ctx, localdoor.StoredBackup{To: to, Entry: h.Entry, Made: h.Made}); err != nil {
		fmt.Fprintf(os.Stderr, "muster: the backup is made, but the service could not record it and still shows the previous one as the last: %v\n", err)
	}
}

type backupList struct {
	From string `arg:"" name:"place" help:"The directory or s3://BUCKET/PREFIX."`
}

// Run lists backups without reading them.
func (c *backupList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	place, err := backupsAt(ctx, env, c.From)
	if err != nil {
		return err
	}
	if place == nil {
		if _, err := os.Stat(c.From); err != nil {
			return err
		}
		return fmt.Errorf("%s is not a directory; `muster restore --verify` shows the contents of a file", c.From)
	}
	all, err := place.List(ctx)
	if err != nil {
		return err
	}
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BACKUP\tMADE\tENTRY\tSTATE OF\tBYTES\tNEW\tINSTALLATION")
	var whole []*repository.Manifest
	broken := 0
	for _, x := range all {
		if x.Err != nil {
			broken++
			fmt.Fprintf(table, "%s\t%s\n", x.Name, x.Err)
			continue
		}
		h := x.Head
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%d\t%s\n", x.Name, h.Made.Format(time.RFC3339), h.Entry, h.State.Format(time.RFC3339), x.Summary().Bytes, x.Made, h.Installation)
		whole = append(whole, x.Manifest)
	}
	_ = table.Flush() // a strings.Builder returns no errors
	if len(whole) > 0 {
		fmt.Fprintf(text, "\n--at takes the entries %s\n", repository.Reachable(whole))
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%s damaged", plural.Of(broken, "backup is", "backups are"))
	}
	return nil
}

type restoreCommand struct {
	reasonFlag
	From   string `arg:"" name:"place" help:"A backup written by muster backup: a file, a directory or s3://BUCKET/PREFIX; with --verify also - for standard input."`
	Data   string `name:"data" placeholder:"DIR" help:"Data directory to create. It must be empty or not exist."`
	Verify bool   `name:"verify" instead:"data,reason" help:"Only read and check everything, and show the contents. For a directory or bucket, this reads all backups and replays the journal from one to the next. Nothing is changed."`
	At     string `name:"at" placeholder:"WHEN" help:"Restore the state after this journal entry, or at this time, such as 2026-11-26T09:30:00Z, from a directory or bucket. Default: the latest."`
	Backup string `name:"backup" placeholder:"NAME" help:"Restore this backup from a directory or bucket; muster backup list shows the names."`

	SecretKeyFile string `name:"secret-key-file" placeholder:"FILE" help:"The key that the service used when the backup was made, if any. The new directory uses it, too."`
}

// wanted parses --at and --backup.
func (c *restoreCommand) wanted() (w repository.Wanted, err error) {
	w.Backup = c.Backup
	if c.At == "" {
		return w, nil
	}
	if c.Backup != "" {
		return w, errors.New("want --at or --backup, not both")
	}
	if w.Entry, err = strconv.ParseUint(c.At, 10, 64); err == nil && w.Entry > 0 {
		return w, nil
	}
	if w.Time, err = time.Parse(time.RFC3339, c.At); err != nil {
		return w, fmt.Errorf("--at: %q; want the number of a journal entry, or a time such as 2026-11-26T09:30:00Z", c.At)
	}
	return w, nil
}

// Run restores or checks a backup.
func (c *restoreCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if c.Data == "" && !c.Verify {
		return errors.New("want --data DIR, the directory to create, or --verify")
	}
	key, err := secretkey.Read(c.SecretKeyFile, c.Data)
	if err != nil {
		return err
	}
	wanted, err := c.wanted()
	if err != nil {
		return err
	}
	if (c.From == pipe || isPipe(c.From)) && !c.Verify {
		return fmt.Errorf("restore reads a backup twice, because it checks all of it before it writes anything: store what comes through the pipe in a file first. restore --verify %s checks a backup from a pipe", c.From)
	}
	from, err := backupsAt(ctx, env, c.From)
	if err != nil {
		return err
	}
	if from == nil && wanted != (repository.Wanted{}) {
		return fmt.Errorf("--at and --backup need a directory or bucket with backups, but %s is a file", c.From)
	}
	before, noDir := os.Stat(c.Data)
	text := &strings.Builder{}
	var s backup.Summary
	var state *cell.Cell
	if c.Verify {
		s, state, err = c.verify(ctx, from, wanted, key, text)
	} else {
		s, state, err = c.restore(ctx, from, wanted, key)
	}
	if none, ok := errors.AsType[*repository.NoneError](err); ok {
		return none
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	var recorded error
	if !c.Verify {
		recorded = c.recordMade(c.Data, "restore", "backup", c.From)
		if noDir == nil && isRoot() { // the directory was empty and belongs to the service's user, who must be able to read the files
			if err := ownerOfFile(before).own(c.Data); err != nil {
				return errors.Join(recorded, err)
			}
		}
	}
	describeBackup(text, s)
	v := state.View()
	totals := v.Totals()
	fmt.Fprintf(text, "in memory  %s, %s, %s\n", plural.Of(totals.Fleets, "fleet", "fleets"), plural.Of(totals.GameSessions, "game session", "game sessions"),
		plural.Of(totals.PlayerSessions, "player session", "player sessions"))
	if c.Verify {
		fmt.Fprintln(text, "\nThe backup is intact.")
	} else {
		fmt.Fprintf(text, "\n%s is now the data directory of a single machine: start it with `muster serve`, but never alongside the service from which the backup was made.\n", c.Data)
	}
	_, err = io.WriteString(stdout, text.String())
	return errors.Join(recorded, err)
}

func (c *restoreCommand) open() (io.ReadCloser, error) {
	if c.From == pipe {
		return os.Stdin, nil
	}
	return os.Open(c.From)
}

func (c *restoreCommand) verify(ctx context.Context, from *repository.Repository, w repository.Wanted, key *secretkey.Key, text *strings.Builder) (s backup.Summary, state *cell.Cell, err error) {
	if from == nil {
		f, err := c.open()
		if err != nil {
			return s, nil, err
		}
		defer f.Close()
		return backup.Verify(f, cell.DefaultConfig(), key)
	}
	v, err := from.Verify(ctx, w, key)
	if err != nil {
		return s, nil, err
	}
	fmt.Fprintf(text, "read       %s of all backups\n", plural.Of(v.Objects, "object", "objects"))
	if v.Replayed > 0 {
		fmt.Fprintf(text, "replayed   %s after entry %d, up to the state of the backup\n", plural.Of(v.Replayed, "entry", "entries"), v.From)
	}
	return v.Summary, v.State, nil
}

func (c *restoreCommand) restore(ctx context.Context, from *repository.Repository, w repository.Wanted, key *secretkey.Key) (s backup.Summary, state *cell.Cell, err error) {
	o := datadir.Options{Dir: c.Data, Program: "muster restore", Key: key, Log: slog.New(slog.DiscardHandler)}
	if from == nil {
		return datadir.Restore(ctx, o, c.open)
	}
	point, err := from.Find(ctx, w)
	if err != nil {
		return s, nil, err
	}
	s, state, err = datadir.Restore(ctx, o, func() (io.ReadCloser, error) { return point.Open(ctx, key) })
	return s, state, point.Advise(ctx, err)
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
		fmt.Fprintf(out, "missing    the records of %s of the archive: see muster archive check\n", plural.Of(s.Damaged, "damaged place", "damaged places"))
	}
}
