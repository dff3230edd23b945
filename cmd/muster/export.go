package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/export"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/settings"
)

type exportCommand struct {
	dataFlag
	reasonFlag
	To     string         `name:"to" required:"" placeholder:"PLACE" help:"A directory (existing, or with a trailing slash) for compressed files of each kind; a file, compressed if its name ends with .gz; or - for standard output."`
	Kinds  []string       `name:"kinds" placeholder:"game_sessions|player_sessions|placements|tickets|player_changes" help:"Kinds of records. Default: all."`
	Since  string         `name:"since" placeholder:"TIME" help:"Only what ended at this time or later, such as 2026-11-01T00:00:00Z. Default: all that the service still has, which is 30 days."`
	Until  string         `name:"until" placeholder:"TIME" help:"Only what ended before this time. Default: all."`
	Resume bool           `name:"resume" help:"Continue where the last run ended, even if it was killed. The first run starts at --since."`
	Rate   settings.Bytes `name:"rate" placeholder:"SIZE" default:"16MiB" help:"Bytes per second that the service sends, so that the machine stays fast for players; 0: no limit."`
}

// place is the destination of an export.
type place interface {
	export.Store
	CursorPath() string
}

// Run exports the archive of the running service.
func (c *exportCommand) Run(ctx context.Context, stdout io.Writer) error {
	if err := mustExist(c.Data); err != nil {
		return err
	}
	kinds, err := c.kinds()
	if err != nil {
		return err
	}
	in := localdoor.ExportRequest{To: c.To, Kinds: kinds, Rate: int64(c.Rate)}
	if in.From, err = endedAt("--since", c.Since); err != nil {
		return err
	}
	if in.Until, err = endedAt("--until", c.Until); err != nil {
		return err
	}
	if in.From != 0 && in.Until != 0 && in.From >= in.Until {
		return fmt.Errorf("--since %s is not before --until %s: the export would be empty", c.Since, c.Until)
	}
	var store export.Store
	resumes := false
	if c.To == pipe {
		if c.Resume {
			return errors.New("--resume needs a directory or a file: standard output has no cursor")
		}
		store = &export.Pipe{To: stdout}
	} else {
		to := c.place(kinds)
		store = to
		cursor, err := export.ReadCursor(to.CursorPath())
		switch {
		case err != nil:
			return err
		case cursor == nil:
		case !c.Resume:
			return fmt.Errorf("%s has an export up to %s; --resume continues it", c.To, cursor.Until.Format(time.RFC3339))
		default:
			if err := cursor.CheckFor(kinds); err != nil {
				return err
			}
			in.From, resumes = cursor.Until.UnixMilli(), true
		}
	}
	client, err := c.client()
	if errors.Is(err, localdoor.ErrNoService) {
		return fmt.Errorf("%w: an export needs the running service", err)
	}
	if err != nil {
		return err
	}
	client.Reason = c.Reason
	stream, err := client.Export(ctx, in)
	if err != nil {
		return err
	}
	defer stream.Close()
	from := &beginning{Store: store}
	records, damaged, err := export.Read(stream, from)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; the next run with --resume continues", err)
	}
	fmt.Fprintf(os.Stderr, "%s\n", plural.Of(records, "record", "records"))
	// What can be read is written, and the cursor is behind it: only this run can tell a script what is missing.
	var missing []error
	if resumes && from.ms > in.From {
		at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
		missing = append(missing, fmt.Errorf("records that ended between %s and %s are missing: the last run ended too long ago, and the service no longer has them", at(in.From), at(from.ms)))
	}
	if damaged > 0 {
		missing = append(missing, fmt.Errorf("the export lacks the records of %s of the archive: see muster archive check", plural.Of(damaged, "damaged place", "damaged places")))
	}
	return errors.Join(missing...)
}

// beginning is a store that notes from when on a stream has records.
type beginning struct {
	export.Store
	ms int64
}

func (b *beginning) Begin(h export.Head) error {
	b.ms = h.From
	return b.Store.Begin(h)
}

func (c *exportCommand) place(kinds []string) place {
	if info, err := os.Stat(c.To); err == nil && info.IsDir() || strings.HasSuffix(c.To, "/") || strings.HasSuffix(c.To, string(os.PathSeparator)) {
		return &export.Dir{Path: c.To, Kinds: kinds}
	}
	return &export.File{Path: c.To, Kinds: kinds}
}

// kinds returns the requested kinds in the order of export.Kinds.
func (c *exportCommand) kinds() (kinds []string, err error) {
	for _, kind := range c.Kinds {
		if !slices.Contains(export.Kinds, kind) {
			return nil, fmt.Errorf("--kinds: %q; want %s", kind, strings.Join(export.Kinds, ", "))
		}
	}
	for _, kind := range export.Kinds {
		if len(c.Kinds) == 0 || slices.Contains(c.Kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// endedAt parses a time and returns Unix milliseconds; 0: none.
func endedAt(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UnixMilli() < 0 {
		return 0, fmt.Errorf("%s: %q; want a time such as 2026-11-01T00:00:00Z", flag, text)
	}
	return t.UnixMilli(), nil
}
